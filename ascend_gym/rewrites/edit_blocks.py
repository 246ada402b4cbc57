"""SEARCH/REPLACE edits of a text, and finding the places that they match."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

SEARCH_LINE = "<<<<<<< SEARCH"
DIVIDER_LINE = "======="
REPLACE_LINE = ">>>>>>> REPLACE"

_SEARCH = re.compile(r"^\s{0,12}<{5,9} ?(?:SEARCH|ORIGINAL)\b.{0,300}$", re.IGNORECASE)
_DIVIDER = re.compile(r"^\s{0,12}={5,9}\s*$")
_REPLACE = re.compile(r"^\s{0,12}>{5,9} ?(?:REPLACE|UPDATED)\b.{0,300}$", re.IGNORECASE)
_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})\s*[\w+]*\s*$")
_SHOWN_CHARS = 200


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
        times: number of matches.
    """

    def __init__(self, message: str, times: int) -> None:
        """Create the error.

        Args:
            message: text that was searched for.
            times: number of matches.
        """
        super().__init__(message)
        self.times = times


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


def applied(lines: Sequence[str], edit: LineEdit) -> list[str]:
    """Return the lines after an edit.

    The SEARCH text must match one place. If there is no exact match, trailing blanks are ignored,
    then indentation, then other blanks; new lines get the indentation of those that they replace. Of several
    matches the one at the line number of a diff counts.

    Raises:
        MisplacedEditError: there is no match, or several.
    """
    for search, replace in ((edit.search, edit.replace), (_trimmed(edit.search), _trimmed(edit.replace))):
        for same in _SAMENESS:
            found = _positions(lines, search, same)
            if len(found) > 1 and edit.line is not None:
                found = [start for start in found if start == edit.line - 1] or found
            if len(found) == 1:
                end = found[0] + len(search)
                place = list(lines[found[0] : end])
                return [*lines[: found[0]], *_reindented(replace, search, place), *lines[end:]]
            if found:
                raise _misplaced(edit, lines, found)
    raise _misplaced(edit, lines, [])


def _without_blanks(line: str) -> str:
    return "".join(line.split())


_SAMENESS: Sequence[Callable[[str], str]] = (str, str.rstrip, str.strip, _without_blanks)


def _positions(lines: Sequence[str], wanted: Sequence[str], same: Callable[[str], str]) -> list[int]:
    bare, bare_wanted = [same(line) for line in lines], [same(line) for line in wanted]
    if not bare_wanted:
        return []
    first, count = bare_wanted[0], len(bare_wanted)
    starts = range(len(bare) - count + 1)
    return [start for start in starts if bare[start] == first and bare[start : start + count] == bare_wanted]


def _trimmed(lines: Sequence[str]) -> list[str]:
    """Return the lines without blank ones at the beginning and the end."""
    kept = [number for number, line in enumerate(lines) if line.strip()]
    return list(lines[kept[0] : kept[-1] + 1]) if kept else []


def _unfenced(part: list[str]) -> list[str]:
    """Return a part of an edit without a fence around it."""
    inner = _trimmed(part)
    if len(inner) >= 2 and _FENCE.match(inner[0]) and inner[-1].strip() == inner[0].strip()[:3]:
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


def _misplaced(edit: LineEdit, lines: Sequence[str], found: Sequence[int]) -> MisplacedEditError:
    first = next((line for line in edit.search if line.strip()), "").strip()
    message = f"the SEARCH part at {first[:_SHOWN_CHARS]!r} occurs {len(found)} times, not once"
    if found:
        places = ", ".join(str(start + 1) for start in found[:8])
        return MisplacedEditError(f"{message}: at lines {places}; give more lines around it", len(found))
    shown = [line.strip()[:_SHOWN_CHARS] for line in lines]
    nearest = difflib.get_close_matches(first[:_SHOWN_CHARS], [line for line in shown if line], 1)
    if nearest:
        where = shown.index(nearest[0])
        message += f"; line {where + 1} is the most like it: {nearest[0]!r}"
        message += _first_difference(edit.search, lines[where:])
    return MisplacedEditError(message, 0)


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
