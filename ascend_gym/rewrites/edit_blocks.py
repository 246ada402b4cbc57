"""SEARCH/REPLACE edits of a text, and finding the places that they match."""

from __future__ import annotations

import difflib
import heapq
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

SEARCH_LINE = "<<<<<<< SEARCH"
DIVIDER_LINE = "======="
REPLACE_LINE = ">>>>>>> REPLACE"

_SEARCH = re.compile(r"^\s{0,12}<{5,9} ?(?:SEARCH|ORIGINAL)\b.{0,300}$", re.IGNORECASE)
_DIVIDER = re.compile(r"^\s{0,12}={5,9}\s*$")
_REPLACE = re.compile(r"^\s{0,12}>{5,9} ?(?:REPLACE|UPDATED)\b.{0,300}$", re.IGNORECASE)
_FENCE = re.compile(r"(?:`{3,}|~{3,})\s*[\w+]*")
MOST_PLACES = 9
"""Matches of an ambiguous edit that are counted."""

_SHOWN_CHARS = 200
_COMPARED_LINES, _LEAST_LIKENESS = 16, 0.6


@dataclass(frozen=True)
class LineEdit:
    """Lines to find, and their replacement.

    Attributes:
        search: lines to find.
        replace: new lines.
        line: one-based number of the first line according to a diff; ``None`` if not given.
    """

    search: list[str]
    replace: list[str]
    line: int | None = None


class MalformedEditError(ValueError):
    """An edit whose change is unclear."""


class MisplacedEditError(ValueError):
    """An edit whose place was not found, or is ambiguous.

    Attributes:
        times: number of matches; ``MOST_PLACES`` stands for as many or more.
    """

    def __init__(self, edit: LineEdit, lines: Sequence[str], places: Sequence[int]) -> None:
        """Create the error. Its text is made when it is read: most such errors only say "not here".

        Args:
            edit: that has no place, or several.
            lines: where it was looked for.
            places: the first matches, as positions in ``lines``.
        """
        super().__init__(edit, lines, places)
        self.times = len(places)

    def __str__(self) -> str:
        edit, lines, places = self.args
        first = next((line for line in edit.search if line.strip()), "").strip()
        times = f"{MOST_PLACES} times or more" if len(places) == MOST_PLACES else f"{len(places)} times"
        message = f"the SEARCH part at {first[:_SHOWN_CHARS]!r} occurs {times}, not once"
        if places:
            shown = ", ".join(str(start + 1) for start in places)
            return f"{message}: at lines {shown}; give more lines around it"
        where = _most_like(first, lines)
        if where is not None:
            message += f"; line {where + 1} is the most like it: {lines[where].strip()[:_SHOWN_CHARS]!r}"
            message += _first_difference(edit.search, lines[where:])
        return message


def is_search(line: str) -> bool:
    """Return whether a line opens an edit, tolerating one chevron too many or too few."""
    return _SEARCH.match(line) is not None


def is_replace(line: str) -> bool:
    """Return whether a line closes an edit, tolerating one chevron too many or too few."""
    return _REPLACE.match(line) is not None


def rendered_edit(edit: LineEdit) -> str:
    """Return an edit as a SEARCH/REPLACE block, without a final newline."""
    return "\n".join([SEARCH_LINE, *edit.search, DIVIDER_LINE, *edit.replace, REPLACE_LINE])


def edits_in(body: str) -> list[LineEdit]:
    """Return the SEARCH/REPLACE edits of a block.

    Raises:
        MalformedEditError: marks are missing or out of order, or a SEARCH part is empty.
    """
    edits: list[LineEdit] = []
    part: list[str] | None = None
    for line in body.split("\n"):
        searching = bool(edits) and part is edits[-1].search
        if is_search(line) and part is None:
            edits.append(LineEdit([], []))
            part = edits[-1].search
        elif searching and _DIVIDER.match(line):
            part = edits[-1].replace
        elif is_replace(line) and part is not None and not searching:
            part = None
        elif is_search(line) or is_replace(line) or line.rstrip() == DIVIDER_LINE:
            raise _malformed(f"{line.rstrip()!r} came out of order")
        elif part is not None:
            part.append(line)
    if part is not None:
        raise _malformed(f"{REPLACE_LINE!r} is missing")
    edits = [LineEdit(_unfenced(edit.search), _unfenced(edit.replace)) for edit in edits]
    if not all(any(line.strip() for line in edit.search) for edit in edits):
        raise _malformed("a SEARCH part is empty")
    return edits


class LineCodes:
    """Gives each line a character for each way in which lines can be the same.

    Texts become strings with a character a line, so that lines are looked for as a string is in another: in
    linear time and without a loop in Python.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}
        self._by_form: list[dict[str, str]] = [{} for _ in _SAMENESS]

    def of(self, lines: Sequence[str]) -> list[str]:
        """Return a string for each sameness: exact, without trailing blanks, without indentation, bare.

        Raises:
            MalformedEditError: there are more different lines than characters.
        """
        codes = [self._known.get(line) or self._learn(line) for line in lines]
        return ["".join(column) for column in zip(*codes, strict=True)] or [""] * len(_SAMENESS)

    def _learn(self, line: str) -> tuple[str, ...]:
        if len(self._known) >= sys.maxunicode:
            raise MalformedEditError(f"more than {sys.maxunicode} different lines")
        forms = zip(self._by_form, _SAMENESS, strict=True)
        codes = tuple(known.setdefault(same(line), chr(len(known))) for known, same in forms)
        self._known[line] = codes
        return codes


class EditedLines:
    """Lines of a file, to which edits apply one after the other.

    Args:
        lines: of the file.
        codes: shared by all files of a candidate.
    """

    def __init__(self, lines: Sequence[str], codes: LineCodes) -> None:
        self._lines, self._codes = list(lines), codes
        self._text: list[str] | None = None

    def __str__(self) -> str:
        return "\n".join(self._lines)

    def copy(self) -> EditedLines:
        """Return the same lines, to which other edits can be applied."""
        other = EditedLines(self._lines, self._codes)
        other._text = None if self._text is None else list(self._text)
        return other

    def apply(self, edit: LineEdit) -> None:
        """Replace the lines that an edit means.

        The SEARCH text must match one place. If there is no exact match, trailing blanks are ignored,
        then indentation, then other blanks; new lines get the indentation of those that they replace. Of
        several matches the one at the line number of a diff counts.

        Raises:
            MisplacedEditError: there is no match, or several.
            MalformedEditError: there are more different lines than can be told apart.
        """
        start, search, replace = self.place(edit)
        end = start + len(search)
        new = _reindented(replace, search, self._lines[start:end])
        self._lines[start:end] = new
        self._text = [
            text[:start] + code + text[end:]
            for text, code in zip(self._text or [], self._codes.of(new), strict=True)
        ]

    def place(self, edit: LineEdit) -> tuple[int, list[str], list[str]]:
        """Return the position of the lines to replace, these lines as they were given, and the new ones.

        Raises:
            MisplacedEditError: there is no match, or several.
            MalformedEditError: there are more different lines than can be told apart.
        """
        if self._text is None:
            self._text = self._codes.of(self._lines)
        for search, replace in ((edit.search, edit.replace), (_trimmed(edit.search), _trimmed(edit.replace))):
            for text, wanted in zip(self._text, self._codes.of(search), strict=True):
                start = text.find(wanted) if wanted else -1
                if start < 0:
                    continue
                if edit.line is not None and edit.line >= 1 and text.startswith(wanted, edit.line - 1):
                    return edit.line - 1, search, replace
                if text.find(wanted, start + 1) < 0:
                    return start, search, replace
                raise MisplacedEditError(edit, self._lines, _first_places(text, wanted))
        raise MisplacedEditError(edit, self._lines, [])


def _without_blanks(line: str) -> str:
    return "".join(line.split())


_SAMENESS: Sequence[Callable[[str], str]] = (str, str.rstrip, str.strip, _without_blanks)


def _first_places(text: str, wanted: str) -> list[int]:
    places = [text.find(wanted)]
    while len(places) < MOST_PLACES and (start := text.find(wanted, places[-1] + 1)) >= 0:
        places.append(start)
    return places


def _most_like(wanted: str, lines: Sequence[str]) -> int | None:
    """Return the position of the line that resembles a text most, or ``None`` if none does.

    Only the few lines that share most letters with it are compared in full, which takes long.
    """
    matcher = difflib.SequenceMatcher(b=wanted[:_SHOWN_CHARS])
    letters = Counter(wanted[:_SHOWN_CHARS])
    first_at: dict[str, int] = {}
    for at, line in enumerate(lines):
        if line.strip():
            first_at.setdefault(line.strip()[:_SHOWN_CHARS], at)

    def shared(line: str) -> float:
        return 2.0 * (letters & Counter(line)).total() / (len(line) + letters.total())

    likeness: list[tuple[float, int]] = []
    for line in heapq.nlargest(_COMPARED_LINES, first_at, key=shared):
        matcher.set_seq1(line)
        likeness.append((matcher.ratio(), first_at[line]))
    best = max(likeness, default=(0.0, 0), key=lambda each: each[0])
    return best[1] if best[0] >= _LEAST_LIKENESS else None


def _trimmed(lines: Sequence[str]) -> list[str]:
    """Return the lines without blank ones at the beginning and the end."""
    kept = [number for number, line in enumerate(lines) if line.strip()]
    return list(lines[kept[0] : kept[-1] + 1]) if kept else []


def _unfenced(part: list[str]) -> list[str]:
    """Return a part of an edit without a fence around it."""
    inner = _trimmed(part)
    if len(inner) >= 2 and _FENCE.fullmatch(inner[0].strip()) and inner[-1].strip() == inner[0].strip()[:3]:
        return inner[1:-1]
    return part


def _reindented(replace: Sequence[str], search: Sequence[str], place: Sequence[str]) -> list[str]:
    """Return the new lines with the indentation of the place, if the search text had another one."""
    pairs = ((line, there) for line, there in zip(search, place, strict=True) if line.strip())
    given, wanted = (_indent(line) for line in next(pairs))
    if given == wanted:
        return list(replace)
    return [
        wanted + line.removeprefix(given) if line.strip() and line.startswith(given) else line
        for line in replace
    ]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _first_difference(search: Sequence[str], place: Sequence[str]) -> str:
    """Describe where a search text that begins like a place first differs from it."""
    pairs = zip(_trimmed(search), place, strict=False)
    wanted, there = next((pair for pair in pairs if pair[0].strip() != pair[1].strip()), ("", ""))
    if not wanted or wanted.strip() == _trimmed(search)[0].strip():
        return ""
    return f", but {wanted.strip()[:_SHOWN_CHARS]!r} is {there.strip()[:_SHOWN_CHARS]!r} there"


def _malformed(what: str) -> MalformedEditError:
    expected = f"expected {SEARCH_LINE!r}, {DIVIDER_LINE!r}, {REPLACE_LINE!r} in this order"
    return MalformedEditError(f"{expected}: {what}")
