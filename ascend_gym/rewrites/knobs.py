"""Knobs: places in an operator's sources where rules apply, all of them turned at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.moves import moves_of
from ascend_gym.rewrites.rule import FileEdit, Site, edited

MAX_KNOBS = 64


@dataclass(frozen=True)
class Knob:
    """A place where a rule applies: a tile size, a number of buffers, a motif that is there or not.

    Position 0 is the source as it is, position k the choice k - 1 of the site.

    Attributes:
        name: number, rule and place.
        rule: name of the rule.
        site: the place.
    """

    name: str
    rule: str
    site: Site

    @property
    def positions(self) -> int:
        """The number of positions, at least 2."""
        return 1 + len(self.site.choices)


def knobs_of(candidate: Candidate, limit: int = MAX_KNOBS) -> list[Knob]:
    """Return the knobs of a candidate: those that stand for many places, then each rule's first place ...

    Large kernels have places by the thousand; ``limit`` are kept.
    """
    places = dict.fromkeys((move.rule.name, move.site) for move in moves_of(candidate))
    seen: Counter[str] = Counter()
    ranked = []
    for rule, site in places:
        seen[rule] += 1
        ranked.append((not site.covers_all, seen[rule], rule, site))
    ranked.sort(key=lambda place: place[:2])
    kept = enumerate(ranked[:limit])
    return [Knob(f"{number:02d} {rule} {site.label}", rule, site) for number, (_, _, rule, site) in kept]


def turned(candidate: Candidate, knobs: list[Knob], positions: Mapping[str, int]) -> Candidate:
    """Return the candidate with its knobs in ``positions``, by name.

    Where the edits of two knobs meet, the one that stands for many places wins, then the earlier one.
    """
    taken: list[FileEdit] = []
    for knob in knobs:
        if positions[knob.name]:
            choice = knob.site.choices[positions[knob.name] - 1]
            edits = [edit for edit in choice.edits if edit not in taken]
            if not any(_meet(edit, other) for edit in edits for other in taken):
                taken += edits
    return edited(candidate, taken)


def _meet(one: FileEdit, other: FileEdit) -> bool:
    """Say whether two edits cannot both be made: they share bytes or insert at the same place."""
    if one.path != other.path:
        return False
    first, second = sorted((one.edit, other.edit), key=lambda edit: (edit.start_byte, edit.end_byte))
    return second.start_byte < first.end_byte or second.start_byte == first.start_byte
