"""Reading a model's answer: whole files or SEARCH/REPLACE edits become a candidate, or a clear problem.

Nothing a model writes raises here: an answer that cannot be used is a ``ParseProblem`` value.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath

from ascend_gym.core.records import Candidate
from ascend_gym.core.text import well_formed
from ascend_gym.rewrites.candidate_files import with_texts
from ascend_gym.rewrites.fenced import (
    DIVIDER_LINE,
    REPLACE_LINE,
    SEARCH_LINE,
    Section,
    render_file,
    sections,
    with_last_newline,
)

_CONTEXT_LINES = (3, 8, 20)


class ProblemKind(str, Enum):
    """Why an answer could not be used."""

    EMPTY = "empty"
    NO_FILES = "no_files"
    UNKNOWN_PATH = "unknown_path"
    TRUNCATED = "truncated"
    MALFORMED_EDIT = "malformed_edit"
    SEARCH_NOT_FOUND = "search_not_found"
    SEARCH_AMBIGUOUS = "search_ambiguous"
    NO_CHANGE = "no_change"
    FORBIDDEN_EDIT = "forbidden_edit"


@dataclass(frozen=True)
class ParseProblem:
    """An answer that is no candidate."""

    kind: ProblemKind
    message: str

    def __str__(self) -> str:
        return f"unusable answer ({self.kind.value}): {self.message}"


@dataclass(frozen=True)
class _Edit:
    search: list[str]
    replace: list[str]


def candidate_from_answer(answer: str, base: Candidate) -> Candidate | ParseProblem:
    """Apply an answer to ``base``.

    Blocks without a path are taken for explanation when others have one. Edits apply in order; a SEARCH
    part must occur exactly once in its file (trailing blanks do not matter). A changed file ends in a
    newline, because that is how it stood in the prompt. Lone surrogates are replaced by U+FFFD.
    """
    answer = well_formed(answer)
    if not answer.strip():
        return ParseProblem(ProblemKind.EMPTY, "the answer is empty")
    blocks = [block for block in sections(answer) if block.path or (block.has_edits and block.last_path)]
    if not blocks:
        return ParseProblem(
            ProblemKind.NO_FILES, "expected blocks headed '### FILE: <path>', each fenced; there is none"
        )
    before = {path: with_last_newline(text) for path, text in base.texts.items()}
    texts = dict(before)
    for block in blocks:
        problem = _apply(block, texts)
        if problem is not None:
            return problem
    changed = {path: text for path, text in texts.items() if text != before[path]}
    if not changed:
        return ParseProblem(ProblemKind.NO_CHANGE, "the answer leaves every file as it was")
    return with_texts(base, changed)


def render_edits(path: str, old: str, new: str) -> str:
    """Return SEARCH/REPLACE blocks under a path header that turn ``old`` into ``new``.

    Each SEARCH part has a few lines around the change. Where no amount of them makes it unique, the
    whole new file is returned as a fenced block instead.
    """
    before, after = old.split("\n"), new.split("\n")
    for context in _CONTEXT_LINES:
        edits = [
            _Edit(before[group[0][1] : group[-1][2]], after[group[0][3] : group[-1][4]])
            for group in difflib.SequenceMatcher(None, before, after).get_grouped_opcodes(context)
        ]
        rendered = "\n".join([f"### FILE: {path}", *(_rendered(edit) for edit in edits)]) + "\n"
        texts = {path: old}
        read_back = [_apply(block, texts) is None for block in sections(rendered)]
        if all(read_back) and texts[path] == new:
            return rendered
    return render_file(path, new)


def _rendered(edit: _Edit) -> str:
    return "\n".join([SEARCH_LINE, *edit.search, DIVIDER_LINE, *edit.replace, REPLACE_LINE])


def _apply(block: Section, texts: dict[str, str]) -> ParseProblem | None:
    """Apply one block to ``texts``; return what is wrong with it, if anything."""
    if not block.closed:
        return ParseProblem(ProblemKind.TRUNCATED, "the last block is not closed: the answer was cut off")
    wanted = block.path or block.last_path or ""
    path = _resolved(wanted, texts)
    if path is None:
        return ParseProblem(ProblemKind.UNKNOWN_PATH, f"no file {wanted!r}; files: {sorted(texts)}")
    if not block.has_edits:
        texts[path] = block.body
        return None
    edits = _parsed_edits(block.body)
    return edits if isinstance(edits, ParseProblem) else _apply_edits(edits, path, texts)


def _resolved(wanted: str, texts: Mapping[str, str]) -> str | None:
    """Return the file meant by a path: itself, or the only file of that name."""
    wanted = wanted.removeprefix("./")
    if wanted in texts:
        return wanted
    same_name = [path for path in texts if PurePosixPath(path).name == wanted]
    return same_name[0] if len(same_name) == 1 else None


def _parsed_edits(body: str) -> list[_Edit] | ParseProblem:
    edits: list[_Edit] = []
    part: list[str] | None = None
    for line in body.split("\n"):
        mark = line.rstrip()
        if mark == SEARCH_LINE and part is None:
            edits.append(_Edit([], []))
            part = edits[-1].search
        elif mark == DIVIDER_LINE and edits and part is edits[-1].search:
            part = edits[-1].replace
        elif mark == REPLACE_LINE and edits and part is edits[-1].replace:
            part = None
        elif mark in (SEARCH_LINE, DIVIDER_LINE, REPLACE_LINE):
            return _malformed(f"{mark!r} came out of order")
        elif part is not None:
            part.append(line)
    if part is not None:
        return _malformed(f"{REPLACE_LINE!r} is missing")
    if not all(any(line.strip() for line in edit.search) for edit in edits):
        return _malformed("a SEARCH part is empty")
    return edits


def _malformed(what: str) -> ParseProblem:
    expected = f"expected {SEARCH_LINE!r}, {DIVIDER_LINE!r}, {REPLACE_LINE!r} in this order"
    return ParseProblem(ProblemKind.MALFORMED_EDIT, f"{expected}: {what}")


def _apply_edits(edits: list[_Edit], path: str, texts: dict[str, str]) -> ParseProblem | None:
    lines = texts[path].split("\n")
    for edit in edits:
        found = _positions(lines, edit.search)
        if len(found) != 1:
            kind = ProblemKind.SEARCH_AMBIGUOUS if found else ProblemKind.SEARCH_NOT_FOUND
            first = next(line for line in edit.search if line.strip()).strip()
            return ParseProblem(
                kind, f"{path}: the SEARCH part at {first!r} occurs {len(found)} times, not once"
            )
        lines[found[0] : found[0] + len(edit.search)] = edit.replace
    texts[path] = "\n".join(lines)
    return None


def _positions(lines: list[str], wanted: list[str]) -> list[int]:
    """Return where ``wanted`` occurs; trailing blanks are ignored when there is no exact match."""
    starts = range(len(lines) - len(wanted) + 1)
    exact = [start for start in starts if lines[start : start + len(wanted)] == wanted]
    if exact:
        return exact
    bare, bare_wanted = [line.rstrip() for line in lines], [line.rstrip() for line in wanted]
    return [start for start in starts if bare[start : start + len(wanted)] == bare_wanted]
