"""Parsing of a model's answer: whole files, edits or diffs become a candidate, or a clear problem.

No answer raises: an unusable one is a ``ParseProblem`` value. An ambiguous answer is
refused, because a wrong guess costs an evaluation and misleads a learner.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from pathlib import PurePosixPath

from ascend_gym.core.protocols import Ending
from ascend_gym.core.records import Candidate
from ascend_gym.core.text import well_formed, without_thoughts
from ascend_gym.rewrites.candidate_files import with_texts
from ascend_gym.rewrites.edit_blocks import (
    EditedLines,
    LineCodes,
    LineEdit,
    MalformedEditError,
    MisplacedEditError,
    edits_in,
    is_replace,
    rendered_edit,
)
from ascend_gym.rewrites.fenced import (
    FencedSection,
    headed_texts,
    header_path,
    render_file,
    sections,
    with_last_newline,
)
from ascend_gym.rewrites.patches import (
    FilePatch,
    entries_of,
    first_elision,
    looks_complete,
    missing_entries,
    patches_in,
    unnumbered,
)

_BEGINNINGS = r"#+[ \t]*FILE\b|<{5,}|diff (?:-|of )|--- \S|\+\+\+ \S|@@ |\*\*\* (?:Begin|Update|Add|Delete) "
CHANGES_BEGIN = re.compile(rf"^[ \t]*(?:{_BEGINNINGS})", re.MULTILINE | re.IGNORECASE)
"""The first line of a changed file, an edit or a diff."""
CODE_BEGINS = re.compile(rf"^[ \t]*(?:`{{3,}}|~{{3,}}|{_BEGINNINGS})", re.MULTILINE | re.IGNORECASE)
"""The same, or a fence: where the words of an answer end."""

_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&"}
_CONTEXT_LINES = (3, 8, 20)
_SHOWN_CHARS = 200
_LATEST_LINES = 40


class ProblemKind(str, Enum):
    """Why an answer is unusable."""

    EMPTY = "empty"
    TOKEN_LIMIT = "token_limit"
    REFUSED = "refused"
    NO_FILES = "no_files"
    UNKNOWN_PATH = "unknown_path"
    TRUNCATED = "truncated"
    ELIDED = "elided"
    PARTIAL_FILE = "partial_file"
    MALFORMED_EDIT = "malformed_edit"
    SEARCH_NOT_FOUND = "search_not_found"
    SEARCH_AMBIGUOUS = "search_ambiguous"
    NO_CHANGE = "no_change"
    FORBIDDEN_EDIT = "forbidden_edit"
    INCOMPLETE = "incomplete"
    UNKNOWN_BASE = "unknown_base"
    REPEATED = "repeated"


@dataclass(frozen=True)
class ParseProblem:
    """An answer that yields no candidate."""

    kind: ProblemKind
    message: str

    def __str__(self) -> str:
        return f"unusable answer ({self.kind.value}): {self.message}"


class _ProblemError(Exception):
    """Carries a problem out of this module's functions."""

    def __init__(self, kind: ProblemKind, message: str) -> None:
        super().__init__(message)
        self.problem = ParseProblem(kind, message)


def candidate_from_answer(
    answer: str, base: Candidate, *, ending: Ending = Ending.COMPLETE
) -> Candidate | ParseProblem:
    """Apply an answer to ``base``.

    Blocks are whole files, SEARCH/REPLACE edits or unified diffs. A block without a path counts if it can
    only mean one file: edits that apply to a single file, or a text with the entry points of one. If other
    blocks have a path, texts without one are taken as explanation. Edits apply in order; their SEARCH text
    must match exactly one place, see ``edit_blocks.applied``. A whole file must not contain a placeholder
    line for omitted code, and must keep the entry points. A changed file ends with a newline, as
    in the prompt. Lone surrogates are replaced by U+FFFD.

    Args:
        answer: text of the model.
        base: candidate that the model was shown.
        ending: why the model stopped.

    Returns:
        The candidate, or why the answer is unusable.
    """
    answer = without_thoughts(well_formed(answer))
    if answer.count("\n") == answer.count("\r\n"):  # line ends of the answer, not of a file in it
        answer = answer.replace("\r\n", "\n")
    if not answer.strip():
        return _nothing_said(ending)
    if "&lt;" in answer and not any("&lt;" in text for text in base.texts.values()):
        for entity, meant in _ENTITIES.items():
            answer = answer.replace(entity, meant)
    try:
        if ending is Ending.TOKEN_LIMIT:
            raise _ProblemError(ProblemKind.TRUNCATED, _cut_off(answer))
        return _applied(answer, base)
    except _ProblemError as error:
        if ending is Ending.REFUSED:
            return ParseProblem(ProblemKind.REFUSED, f"the model refused: {answer.strip()[:_SHOWN_CHARS]!r}")
        return error.problem


def render_edits(path: str, old: str, new: str) -> str:
    """Return SEARCH/REPLACE blocks under a path header that turn ``old`` into ``new``.

    Each SEARCH part includes a few lines of context. If no amount of context makes it unique, the
    whole new file is returned as a fenced block instead.
    """
    before, after = old.split("\n"), new.split("\n")
    for context in _CONTEXT_LINES:
        edits = [
            LineEdit(before[group[0][1] : group[-1][2]], after[group[0][3] : group[-1][4]])
            for group in difflib.SequenceMatcher(None, before, after).get_grouped_opcodes(context)
        ]
        rendered = "\n".join([f"### FILE: {path}", *(rendered_edit(edit) for edit in edits)]) + "\n"
        files = _Files({path: old})
        try:
            for block in sections(rendered):
                files.apply(block, path)
        except _ProblemError:
            continue
        if files.texts()[path] == new:
            return rendered
    return render_file(path, new)


def _cut_off(answer: str) -> str:
    """Return what to say of an answer that was cut off, which may have gone round in circles."""
    lines = [line.strip() for line in answer.split("\n")[:-1] if line.strip()]
    latest = lines[-_LATEST_LINES:]
    if len(latest) == _LATEST_LINES and len(set(latest)) <= _LATEST_LINES // 8:
        return (
            "the answer repeated itself until it was cut off at the token limit "
            f"({latest[-1][:_SHOWN_CHARS]!r}): write each line once, and give edits in place of whole files"
        )
    return (
        "the answer was cut off at the token limit: give edits in place of whole files, or a shorter change"
    )


def _nothing_said(ending: Ending) -> ParseProblem:
    if ending is Ending.TOKEN_LIMIT:
        message = (
            "the model used up its tokens before it answered: raise --max-tokens, or ask it to reason less"
        )
        return ParseProblem(ProblemKind.TOKEN_LIMIT, message)
    if ending is Ending.REFUSED:
        return ParseProblem(ProblemKind.REFUSED, "the model refused, or its answer was filtered")
    return ParseProblem(ProblemKind.EMPTY, "the answer is empty")


def _applied(answer: str, base: Candidate) -> Candidate:
    before = {path: with_last_newline(text) for path, text in base.texts.items()}
    files = _Files(before)
    for block, path in _meant(answer, files):
        files.apply(block, path)
    changed = {path: text for path, text in files.texts().items() if text != before[path]}
    if not changed:
        raise _ProblemError(ProblemKind.NO_CHANGE, "the answer leaves every file as it was")
    for path, text in changed.items():
        elision = first_elision(before[path], text)
        if elision is not None:
            message = f"{path}: line {elision[0]}, {elision[1]!r}, stands for code that is left out"
            raise _ProblemError(
                ProblemKind.ELIDED, f"{message}: give the whole file, or SEARCH/REPLACE edits"
            )
    missing = missing_entries(before.values(), (before | changed).values())
    if missing:
        message = f"{', '.join(sorted(changed))}: {', '.join(missing)} is no longer there"
        raise _ProblemError(
            ProblemKind.PARTIAL_FILE,
            f"{message}: a block under a path replaces the whole file; use edits for a part",
        )
    return with_texts(base, changed)


def _meant(answer: str, files: _Files) -> list[tuple[FencedSection, str | None]]:
    """Return the blocks that are part of the answer, each with its path."""
    blocks = list(sections(answer))
    found = blocks or list(headed_texts(answer))
    chosen = [(block, files.path_of(block)) for block in found]
    named = {files.resolved(block.path) for block, _ in chosen if block.path}
    kept = [
        (block, path)
        for block, path in chosen
        if block.path or block.is_part or (path is not None and path not in named)
    ]
    if kept:
        return kept
    came = "those that there are name no file, and are no whole file either" if blocks else "there is none"
    expected = "expected blocks headed '### FILE: <path>', each a fenced whole file or SEARCH/REPLACE edits"
    raise _ProblemError(ProblemKind.NO_FILES, f"{expected}; {came}")


class _Files:
    """The files of the incumbent, to which blocks of an answer apply.

    What blocks ask of a file is worked out once, so that many small blocks cost no more than a large one.
    """

    def __init__(self, before: Mapping[str, str]) -> None:
        codes = LineCodes()
        self._codes, self._before = codes, before
        self._edited: dict[str, EditedLines] = {}
        self._resolved: dict[str | None, str | None] = {}

    @cached_property
    def _lines(self) -> dict[str, EditedLines]:
        return {path: EditedLines(text.split("\n"), self._codes) for path, text in self._before.items()}

    @cached_property
    def _known_lines(self) -> set[str]:
        return {line.strip() for text in self._before.values() for line in text.split("\n")}

    @cached_property
    def _entries(self) -> dict[str, set[str]]:
        return {path: entries_of(text) for path, text in self._before.items()}

    def texts(self) -> dict[str, str]:
        """Return all files as they are now."""
        return {**self._before, **{path: str(lines) for path, lines in self._edited.items()}}

    def path_of(self, block: FencedSection) -> str | None:
        """Return the path of a block as the answer gives it; ``None`` if it is ambiguous."""
        if block.path:
            return block.path
        if block.has_patch:
            return block.last_path or block.hint
        if block.has_edits:
            if not _is_whole(block):
                return block.last_path
            try:
                edits = edits_in(block.body)
            except MalformedEditError:
                return block.last_path
            hinted = (self.resolved(path) for path in (block.hint, block.last_path))
            named = [path for path in hinted if path and self._fits(edits, path)]
            fitting = named[:1] or [path for path in self._before if self._fits(edits, path)]
            return fitting[0] if len(fitting) == 1 else block.last_path
        entries = entries_of(block.body)
        if not entries or not looks_complete(block.body):
            return None
        whole = [path for path, needed in self._entries.items() if needed and needed <= entries]
        hinted_path = self.resolved(block.hint) if block.hint else None
        return whole[0] if len(whole) == 1 and hinted_path in (None, whole[0]) else None

    def _fits(self, edits: Sequence[LineEdit], path: str) -> bool:
        """Return whether edits apply to a file as it was before the answer."""
        lines = self._lines[path]
        try:
            lines.place(edits[0])
            if len(edits) > 1:
                lines = lines.copy()
                for edit in edits:
                    lines.apply(edit)
        except (MisplacedEditError, MalformedEditError):
            return False
        return True

    def apply(self, block: FencedSection, wanted: str | None) -> None:
        """Apply one block."""
        if not _is_whole(block):
            raise _ProblemError(ProblemKind.TRUNCATED, "the last block is not closed: the answer was cut off")
        try:
            for change in _changes(block, wanted):
                path = self._known(change.path)
                if change.whole is not None:
                    for each, text in self._by_file(path, unnumbered(change.whole)).items():
                        self._edited[each] = EditedLines(text.split("\n"), self._codes)
                else:
                    self._apply_edits(change.edits, path)
        except MalformedEditError as error:
            raise _ProblemError(ProblemKind.MALFORMED_EDIT, str(error)) from error

    def _apply_edits(self, edits: Sequence[LineEdit], path: str) -> None:
        if path not in self._edited:
            self._edited[path] = self._lines[path].copy()
        for edit in edits:
            try:
                self._edited[path].apply(edit)
            except MisplacedEditError as error:
                kind = ProblemKind.SEARCH_AMBIGUOUS if error.times else ProblemKind.SEARCH_NOT_FOUND
                raise _ProblemError(kind, f"{path}: {error}") from error

    def _by_file(self, path: str, whole: str) -> dict[str, str]:
        """Return a text that replaces a file, or those of several files in one block, each headed.

        A comment that is nothing but the path of another file is such a header unless the file had it before.
        """
        parts: dict[str, list[str]] = {path: []}
        for line in whole.split("\n"):
            named = None if line.strip() in self._known_lines else header_path(line)
            other = self.resolved(named) if named else None
            if other is not None and other not in parts:
                path = other
                parts[path] = [line] if line.lstrip().startswith("//") else []
            else:
                parts[path].append(line)
        if len(parts) == 1:
            return {path: whole}
        return {each: "\n".join(lines).rstrip("\n") + "\n" for each, lines in parts.items()}

    def _known(self, wanted: str | None) -> str:
        if wanted is None:
            raise _ProblemError(
                ProblemKind.NO_FILES,
                "expected '### FILE: <path>' before edits; these have no path, and fit no file, or several",
            )
        path = self.resolved(wanted)
        if path is None:
            message = f"no file {wanted!r}; files: {sorted(self._before)}; new files are refused"
            raise _ProblemError(ProblemKind.UNKNOWN_PATH, message)
        return path

    def resolved(self, wanted: str | None) -> str | None:
        """Return ``known_path``, worked out once."""
        if wanted not in self._resolved:
            self._resolved[wanted] = known_path(wanted, self._before)
        return self._resolved[wanted]


def known_path(wanted: str | None, texts: Collection[str]) -> str | None:
    """Return the file that a path of an answer means: itself, or the only match.

    Diffs put ``a/`` or ``b/`` before a path, other answers ``./`` or parent folders, or only give a file
    name.
    """
    wanted = (wanted or "").replace("\\", "/").strip(" `'\"")
    if wanted in texts:
        return wanted
    same_end = [path for path in texts if f"/{wanted}".endswith(f"/{path}")]
    same_name = [path for path in texts if PurePosixPath(path).name == wanted.removeprefix("./")]
    found = same_end or same_name
    return found[0] if len(found) == 1 else None


def _is_whole(block: FencedSection) -> bool:
    """Return whether a block is closed, or complete although its fence is not."""
    if block.closed:
        return True
    if block.has_patch:
        return False
    if not block.has_edits:
        return looks_complete(block.body)
    last = next((line for line in reversed(block.body.split("\n")) if line.strip()), "")
    return is_replace(last)


def _changes(block: FencedSection, wanted: str | None) -> list[FilePatch]:
    """Return the changes of a block by file, whatever its form.

    Raises:
        MalformedEditError: edits or hunks are malformed.
    """
    if block.has_edits:
        return [FilePatch(wanted, edits_in(block.body))]
    if block.has_patch:
        return [replace(each, path=each.path or wanted) for each in patches_in(block.body)]
    return [FilePatch(wanted, whole=block.body)]
