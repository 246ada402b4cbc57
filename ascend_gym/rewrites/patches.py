"""Unified diffs, and patches in the form of ``*** Begin Patch``, as edits by file.

Hunks are placed by their lines. Counts in hunk headers are ignored, because models cannot count; line
numbers only decide between equal places.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ascend_gym.rewrites.edit_blocks import LineEdit, MalformedEditError

_MAX_COMMENT_CHARS = 200
_COMMENT = re.compile(
    r"^\s*(?://+|/\*+|#(?!\s*(?:include|define|if|else|end|pragma|undef|elif)))?(.*?)(?:\*+/)?\s*$"
)
_DOTS = re.compile(r"^\W{0,3}(?:\.{3}|…)")
_DOTS_AT_END = re.compile(r"(?:\.{3}|…)\W{0,3}$")
_LEFT_OUT = re.compile(
    r"\b(?:unchanged|same as|existing|rest|remain\w*|omitted|as before|previous\w*|original|as is)\b",
    re.IGNORECASE,
)
_SAID_IN_WORDS = re.compile(
    r"\b(?:rest|remainder|remaining|everything else|other (?:code|functions?|methods?|lines))\b.{0,60}"
    r"\b(?:unchanged|same|as (?:is|before|it was|above))\b"
    r"|\bremains? (?:the same|unchanged|as (?:is|before))\b"
    r"|\bomitted for (?:brevity|clarity)\b"
    r"|^\W*(?:code )?(?:is )?unchanged\W*$"
    r"|^\W*(?:the )?(?:same )?as (?:before|above|(?:in )?(?:the )?original)\W*$"
    r"|^\W*(?:the )?rest(?: of the \w+)?(?: here)?\W*$"
    r"|(?:其余|其他|其它|剩余).{0,20}(?:不变|相同|省略|一致)|^\W*(?:保持不变|不变|省略|同上|同原代码)\W*$"
    r"|^\W*(?:existing|original|previous) (?:code|implementation|body)(?: here)?\W*$",
    re.IGNORECASE,
)
_ENTRY = re.compile(
    r"__global__\s[\w\s]{0,80}?\b(\w+)\s*\(|\b(OP_ADD|REGISTER_TILING_DATA_CLASS)\s*\(\s*(\w+)"
)
_LAST_LINE = re.compile(r"^\s*(?:#\s*endif\b|//|\w+\([^()]*\)\s*$)|(?:[;}]|\*/)\s*(?://.*)?$")
_NUMBERED = re.compile(r"^ {0,8}(\d{1,6})(?:\t| ?[|:] ?)(.*)$")
_FIRST_LINE = re.compile(r"^\s*(?:#\s*(?:include|pragma|ifndef|if|define)|//|/\*|using |namespace |extern )")

_HUNK = re.compile(r"^@@(?: -(\d{1,9})(?:,\d{1,9})? \+\d{1,9}(?:,\d{1,9})?)?(?: ?@@|\s|$)")
_OLD_FILE = re.compile(r"^--- \s*([^\t]{1,300})")
_NEW_FILE = re.compile(r"^\+\+\+ \s*([^\t]{1,300})")
_TARGET = re.compile(r"^\*\*\* (Update|Add|Delete) File: (.{1,300})$")
_FURNITURE = re.compile(
    r"^(?:diff --git |index [0-9a-f]|\*\*\* (?:Begin|End) Patch|\\ No newline|new file mode )"
)
_NOTHING = "/dev/null"


def unnumbered(body: str) -> str:
    """Return a text without the line numbers in front of all its lines, or as it is."""
    lines = [_NUMBERED.match(line) for line in body.rstrip("\n").split("\n")]
    if any(line is None or int(line[1]) != number for number, line in enumerate(lines, 1)):
        return body
    return "".join(f"{line[2]}\n" for line in lines if line is not None)


def is_elision(line: str) -> bool:
    """Return whether a line is a placeholder for omitted code, such as ``// ... rest unchanged``."""
    if len(line) > _MAX_COMMENT_CHARS or not line.strip():
        return False
    comment = _COMMENT.match(line)
    words = comment[1].strip() if comment else ""
    if words in ("...", "…"):
        return True
    if "*/" in words:  # code follows the comment
        return False
    if not line.lstrip().startswith(("//", "/*", "#")):
        return bool(_DOTS.match(line) and _LEFT_OUT.search(line))
    is_placeholder = _SAID_IN_WORDS.search(words) or (_DOTS_AT_END.search(words) and _LEFT_OUT.search(words))
    return bool(_DOTS.match(words) or is_placeholder)


def first_elision(old: str, new: str) -> tuple[int, str] | None:
    """Return number and text of the first placeholder line that is not in the old text."""
    known = {line.strip() for line in old.split("\n")}
    for number, line in enumerate(new.split("\n"), 1):
        if is_elision(line) and line.strip() not in known:
            return number, line.strip()
    return None


def entries_of(text: str) -> set[str]:
    """Return the external names of a file: its kernels, and what it registers for an operator."""
    found = _ENTRY.findall(text)
    return {f"{kernel}()" if kernel else f"{macro}({operator})" for kernel, macro, operator in found}


def missing_entries(before: Iterable[str], after: Iterable[str]) -> list[str]:
    """Return the external names that the texts of a candidate no longer have."""
    return sorted(entries_of("\n".join(before)) - entries_of("\n".join(after)))


def looks_complete(body: str) -> bool:
    """Return whether a text begins and ends like a file and has balanced braces."""
    lines = [line for line in body.split("\n") if line.strip()]
    if not lines or body.count("{") != body.count("}"):
        return False
    return _FIRST_LINE.match(lines[0]) is not None and _LAST_LINE.search(lines[-1]) is not None


@dataclass(frozen=True)
class FilePatch:
    """Changes of one file.

    Attributes:
        path: path in the patch; ``None`` if it has none.
        edits: edits in order.
        whole: complete text, if the patch creates the file.
    """

    path: str | None
    edits: list[LineEdit] = field(default_factory=list)
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


def _edits(hunk: _Hunk) -> Iterator[LineEdit]:
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


def _edit(rows: Sequence[tuple[str, str]], line: int | None) -> LineEdit:
    search = [text for mark, text in rows if mark != "+"]
    replace = [text for mark, text in rows if mark != "-"]
    if not any(text.strip() for text in search):
        raise MalformedEditError("a hunk has no line of the file by which its place could be found")
    return LineEdit(search, replace, line)
