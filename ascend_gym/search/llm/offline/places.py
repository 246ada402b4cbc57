"""Changes of numbers alone, as steps along an axis."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_DIGITS = re.compile(r"\d+")
_REPEATED = re.compile(r" #\d+$")

Numbers = tuple[int, ...]
Axis = tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """A place along an axis: the same added lines but for their numbers.

    Attributes:
        axis: the added lines, each number a zero.
        present: the numbers that stand there now; empty where the lines have another form now.
        wanted: the numbers that would stand there.
    """

    axis: Axis
    present: Numbers
    wanted: Numbers


def place_of(changes: Iterable[str]) -> Place | None:
    """Return where removed (``-``) and added (``+``) lines go along their axis; ``None`` without numbers."""
    removed: list[str] = []
    added: list[str] = []
    for change in changes:
        (added if change[0] == "+" else removed).append(_REPEATED.sub("", change[1:]))
    axis, wanted = _split(added)
    before, present = _split(removed)
    return Place(axis, present if before == axis else (), wanted) if wanted and wanted != present else None


def _split(lines: Iterable[str]) -> tuple[Axis, Numbers]:
    """Return lines without their numbers, and these, in an order that does not depend on them."""
    split = sorted((_DIGITS.sub("0", line), line) for line in lines)
    numbers = tuple(int(number) for _, line in split for number in _DIGITS.findall(line))
    return tuple(masked for masked, _ in split), numbers
