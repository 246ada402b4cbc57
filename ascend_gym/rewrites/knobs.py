"""Knobs: places in an operator's sources where rules apply, all set at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.library import moves_of
from ascend_gym.rewrites.rule import FileEdit, Site, edited
from ascend_gym.rewrites.syntax import Edit

MAX_KNOBS = 64


@dataclass(frozen=True)
class Knob:
    """A place where a rule applies: a tile size, a number of buffers, a motif that is present or not.

    Position 0 leaves the source unchanged, position k is choice k - 1 of the site.

    Attributes:
        name: number, rule and place.
        rule: name of the rule.
        site: place.
    """

    name: str
    rule: str
    site: Site

    @property
    def positions(self) -> int:
        """The number of positions, at least 2."""
        return 1 + len(self.site.choices)


def knobs_of(candidate: Candidate, limit: int = MAX_KNOBS) -> list[Knob]:
    """Return the knobs of a candidate: first those that cover many places, then each rule's first place ...

    Large kernels have thousands of places; only the first ``limit`` are returned.
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

    If the edits of two knobs conflict, the one that covers many places wins, then the earlier one.
    """
    taken: dict[str, dict[Edit, None]] = defaultdict(dict)  # by path
    for knob in knobs:
        if positions[knob.name]:
            choice = knob.site.choices[positions[knob.name] - 1]
            fresh = [(each.path, each.edit) for each in choice.edits if each.edit not in taken[each.path]]
            if not any(_meet(edit, other) for path, edit in fresh for other in taken[path]):
                for path, edit in fresh:
                    taken[path][edit] = None
    return edited(candidate, [FileEdit(path, edit) for path, edits in taken.items() for edit in edits])


def _meet(one: Edit, other: Edit) -> bool:
    """Return whether two edits of a file conflict: they share bytes or begin at the same place."""
    if one.start_byte < other.start_byte:
        return other.start_byte < one.end_byte
    return one.start_byte < other.end_byte or one.start_byte == other.start_byte
