"""Unified diffs, and patches in the form of ``*** Begin Patch``, as edits by file.

Hunks are placed by their lines. Counts in hunk headers are ignored, because models cannot count; line
numbers only decide between equal places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ascend_gym.rewrites.edit_blocks import Edit, MalformedEditError
from ascend_gym.rewrites.whole_files import is_elision

_HUNK = re.compile(r"^@@(?: -(\d{1,9})(?:,\d{1,9})? \+\d{1,9}(?:,\d{1,9})?)?(?: ?@@|\s|$)")
_OLD_FILE = re.compile(r"^--- \s*([^\t]{1,300})")
_NEW_FILE = re.compile(r"^\+\+\+ \s*([^\t]{1,300})")
_TARGET = re.compile(r"^\*\*\* (Update|Add|Delete) File: (.{1,300})$")
_FURNITURE = re.compile(
    r"^(?:diff --git |index [0-9a-f]|\*\*\* (?:Begin|End) Patch|\\ No newline|new file mode )"
)
_NOTHING = "/dev/null"


@dataclass(frozen=True)
class FilePatch:
    """Changes of one file.

    Attributes:
        path: path in the patch; ``None`` if it has none.
        edits: edits in order.
        whole: complete text, if the patch creates the file.
    """

    path: str | None
    edits: list[Edit] = field(default_factory=list)
    whole: str | None = None


@dataclass
class _Hunk:
    line: int | None
    rows: list[tuple[str, str]] = field(default_factory=list)  # mark and text; "?" for a missing mark


def begins_patch(lines: Sequence[str], at: int) -> bool:
    """Return whether a patch begins at a line outside any fence."""
    line = lines[at]
    if line.startswith(("diff --git ", "*** Begin Patch")) or _TARGET.match(line):
        return True
    return _names_files(lines, at)


def is_patch(lines: Sequence[str]) -> bool:
    """Return whether lines are a patch and not the text of a file."""
    return any(
        _TARGET.match(line) or (line.startswith("@@") and _HUNK.match(line)) or _names_files(lines, at)
        for at, line in enumerate(lines)
    )


def patches_in(body: str) -> list[FilePatch]:
    """Return the changes by file.

    Raises:
        MalformedEditError: a hunk changes nothing or has no line to find its place by, or a
            file is to be deleted.
    """
    lines = body.removesuffix("\n").split("\n")
    return [_file_patch(path, hunks) for path, hunks in _by_file(lines) if hunks]


def _by_file(lines: Sequence[str]) -> Iterator[tuple[str | None, list[_Hunk]]]:
    path: str | None = None
    hunks: list[_Hunk] = []
    at = 0
    while at < len(lines):
        line, at = lines[at], at + 1
        target = _TARGET.match(line)
        if target or _names_files(lines, at - 1):
            yield path, hunks
            hunks = []
            path, at = (_target(target), at) if target else (_new_path(line, lines[at]), at + 1)
        elif head := _HUNK.match(line):
            hunks.append(_Hunk(int(head[1]) if head[1] else None))
        elif not _FURNITURE.match(line):
            if not hunks and line.strip():
                hunks.append(_Hunk(None))
            if hunks:
                marked = line[:1] in (" ", "+", "-")
                hunks[-1].rows.append((line[0], line[1:]) if marked else ("?", line))
    yield path, hunks


def _names_files(lines: Sequence[str], at: int) -> bool:
    following = lines[at + 1] if at + 1 < len(lines) else ""
    return _OLD_FILE.match(lines[at]) is not None and _NEW_FILE.match(following) is not None


def _new_path(old_line: str, new_line: str) -> str:
    old, new = _OLD_FILE.match(old_line), _NEW_FILE.match(new_line)
    path = new[1].strip() if new else ""
    if path == _NOTHING:
        raise MalformedEditError(f"{old[1].strip() if old else 'a file'} is deleted: files cannot be deleted")
    return path


def _target(target: re.Match[str]) -> str:
    if target[1] == "Delete":
        raise MalformedEditError(f"{target[2].strip()} is deleted: files cannot be deleted")
    return target[2].strip()


def _file_patch(path: str | None, hunks: Sequence[_Hunk]) -> FilePatch:
    rows = [row for hunk in hunks for row in hunk.rows]
    new_by_number = len(hunks) == 1 and hunks[0].line == 0
    if rows and new_by_number and all(mark == "+" or not text.strip() for mark, text in rows):
        return FilePatch(path, whole="".join(f"{text}\n" for _, text in rows))
    edits = [edit for hunk in hunks for edit in _edits(hunk)]
    if not edits:
        raise MalformedEditError("the diff has no line that begins with '+' or '-'")
    return FilePatch(path, edits)


def _edits(hunk: _Hunk) -> Iterator[Edit]:
    """Yield the changes of a hunk; several if lines were omitted from it."""
    rows: list[tuple[str, str]] = []
    line = hunk.line
    for mark, text in [*_without_loose_end(hunk.rows), ("?", "...")]:
        if mark in "? " and is_elision(text):
            if any(each in "+-" for each, _ in rows):
                yield _edit(rows, line)
            rows, line = [], None
        else:
            rows.append((mark, text))


def _without_loose_end(rows: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return rows without trailing prose or blank lines."""
    marked = [number for number, (mark, _) in enumerate(rows) if mark != "?"]
    return list(rows[: marked[-1] + 1]) if marked else []


def _edit(rows: Sequence[tuple[str, str]], line: int | None) -> Edit:
    search = [text for mark, text in rows if mark != "+"]
    replace = [text for mark, text in rows if mark != "-"]
    if not any(text.strip() for text in search):
        raise MalformedEditError("a hunk has no line of the file by which its place could be found")
    return Edit(search, replace, line)
