"""What attempts tell of numbers: how the latency changes along each, and so where to look next."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.library import RULES
from ascend_gym.rewrites.rule import Choice, FileEdit, Rule, Side, Site
from ascend_gym.rewrites.syntax import Edit
from ascend_gym.search.llm.offline.attempts import SEEN, ShownAttempt, changes_by
from ascend_gym.search.llm.offline.places import Axis, Numbers, Place, place_of
from ascend_gym.search.llm.offline.reading import BANK_RULES, SMALLER_TILES

if TYPE_CHECKING:
    from typing_extensions import Self

_HOST_RULES = frozenset(rule.name for rule in RULES if rule.side is Side.TILING)
_TELLING_GAIN = 0.003
_NUMBER = re.compile(r"(?<![\w.])\d+(?=[uUlL]*(?![\w.]))")
_FAILED = -9.0  # in place of the gain of what did not work at all

_KNOWN_WORSE = 0.02
_KNOWN_BETTER = 2.0  # under another version; the rest may have changed
_BEYOND_A_LOSS = 0.05
_BEYOND_NO_EFFECT = 0.3  # a threshold may lie farther out
_BEFORE_NO_EFFECT = 0.02
_UNUSED = 0.02  # beyond a number of the kernel without effect: nothing seems to depend on it
_BRACKETED = 1.5  # between one without effect and one that lost: a threshold lies there
_ONWARDS = 2.0
_STEEP = 10.0  # how much more promising it is to go on where the last step gained much
_STEEPEST = 0.1
_AROUND = 1.5  # between the present numbers and ones that lost
_FINER = 0.3  # round numbers first


class Axes:
    """Gains along axes, as far as attempts that went along one alone tell."""

    def __init__(self, attempts: Sequence[ShownAttempt]) -> None:
        """Read the attempts, in order."""
        self._gains: dict[Axis, dict[Numbers, float]] = defaultdict(dict)
        self._in_doubt: dict[Axis, set[Numbers]] = defaultdict(set)
        self._of_kernel: set[Axis] = set()  # those that other rules than those of tiling change
        doubtful = _doubtful(attempts)
        for number, attempt in enumerate(attempts):
            place = place_of(attempt.changes)
            gain = _FAILED if attempt.failed else attempt.gain
            if place is None or gain is None:
                continue
            if attempt.is_of_numbers and attempt.rules[0] not in _HOST_RULES:
                self._of_kernel.add(place.axis)
            if number in doubtful:
                self._in_doubt[place.axis].add(place.wanted)
            else:
                self._note(place, gain)

    def _note(self, place: Place, gain: float) -> None:
        """Note a gain with respect to the numbers that stood there, which is a sum over the steps to them."""
        gains = self._gains[place.axis]
        gains[place.wanted] = gains.setdefault(place.present, 0.0) + gain

    def weight(self, place: Place | None) -> float | None:
        """Return how promising a step is; ``None`` where nothing was tried along its axis.

        Numbers that were tried are known. Beyond numbers that lost, or that failed, more is lost; up to ones
        without effect there is none, whatever else has changed since, nor elsewhere along an axis of the
        kernel, where nothing seems to depend on them; where the way back lost there may be more to gain.
        """
        if place is None:
            return None
        gains = self._gains.get(place.axis, {})
        in_doubt = self._in_doubt.get(place.axis, set()) - gains.keys()
        if any(_is_before(place, numbers) for numbers in in_doubt):
            return _BEFORE_NO_EFFECT
        if not gains:
            return None
        present = gains.get(place.present, 0.0)
        if place.wanted in gains:
            return _KNOWN_BETTER if gains[place.wanted] > present + SEEN else _KNOWN_WORSE
        further = _UNUSED if place.axis in self._of_kernel else _BEYOND_NO_EFFECT
        return _untried(place, {numbers: gain - present for numbers, gain in gains.items()}, further)

    def tried(self, axis: Axis) -> Iterable[Numbers]:
        """Return the numbers that were tried along an axis."""
        return self._gains.get(axis, {}).keys()


def without_doubtful(attempts: Sequence[ShownAttempt]) -> list[ShownAttempt]:
    """Return the attempts that still tell what would come of them."""
    doubtful = _doubtful(attempts)
    return [attempt for number, attempt in enumerate(attempts) if number not in doubtful]


def _doubtful(attempts: Sequence[ShownAttempt]) -> set[int]:
    """Return which attempts may end otherwise by now.

    Numbers of a tiling function depend on each other: one that had no effect may have one under another that
    gained since, as a least share of work has under a coarser alignment. It is tried again; an axis along
    which nothing ever had an effect is in doubt once. Which buffers share banks depends on their sizes, and
    so on such numbers, too.
    """
    doubtful = _tiles_in_doubt(attempts)
    moved: list[int] = []
    vain: dict[Axis, list[int]] = defaultdict(list)
    doubted: set[Axis] = set()
    telling: set[Axis] = set()
    unused: set[Axis] = set()
    for number, attempt in enumerate(attempts):
        if len(attempt.rules) == 1 and attempt.rules[0] in BANK_RULES and not attempt.kept:
            moved.append(number)
        place = place_of(attempt.changes) if attempt.is_of_numbers else None
        if place is None or attempt.rules[0] not in _HOST_RULES:
            continue
        if attempt.without_effect:
            vain[place.axis].append(number)
            unused |= {place.axis} & doubted - telling
            continue
        telling.add(place.axis)
        if attempt.kept:
            doubtful.update(moved)
        if attempt.kept and (attempt.gain or 0.0) > _TELLING_GAIN:
            others = vain.keys() - {place.axis} - (unused - telling)
            doubtful.update(*(vain.pop(axis) for axis in others))
            doubted |= others
    return doubtful


def _tiles_in_doubt(attempts: Sequence[ShownAttempt]) -> set[int]:
    """Return which attempts cut other tiles in vain before the kernel gained.

    Several tiles for each core pay where copies and computing overlap, which is the kernel's doing.
    """
    doubtful: set[int] = set()
    vain: list[int] = []
    for number, attempt in enumerate(attempts):
        if not attempt.kept:
            vain += [number] * (attempt.rules == (SMALLER_TILES,))
        elif (attempt.gain or 0.0) > _TELLING_GAIN and not _HOST_RULES.issuperset(attempt.rules):
            doubtful.update(vain)
    return doubtful


def _is_before(place: Place, numbers: Numbers) -> bool:
    """Say whether a step ends before it comes to ``numbers``."""
    here, there, far = size_of(place.present), size_of(place.wanted), size_of(numbers)
    return (here < there < far) or (here > there > far)


def _untried(place: Place, gains: Mapping[Numbers, float], further: float) -> float:
    """Return how promising numbers are that were not tried, from gains over the present ones.

    Args:
        place: where they are.
        gains: natural logarithms, by the numbers that were tried.
        further: how promising numbers are beyond one without effect.
    """
    here, there = size_of(place.present), size_of(place.wanted)
    away = {size_of(numbers) - here: gain for numbers, gain in gains.items() if numbers != place.present}
    ahead = {abs(size): gain for size, gain in away.items() if size * (there - here) > 0}
    inside = [gain for size, gain in ahead.items() if size <= abs(there - here)]
    outside = [gain for size, gain in ahead.items() if size > abs(there - here)]
    if inside and min(inside) < -SEEN:
        return _BEYOND_A_LOSS
    if any(abs(gain) <= SEEN for gain in outside):
        return _BEFORE_NO_EFFECT
    if inside:
        return _BRACKETED if outside and min(outside) < -SEEN else further
    if outside:
        return _AROUND
    behind = [gain for size, gain in away.items() if size * (there - here) < 0]
    lost = -min(behind, default=0.0)
    return _ONWARDS * (1.0 + _STEEP * min(lost, _STEEPEST)) if lost > SEEN else further


@dataclass(frozen=True)
class NumberedChoices:
    """How promising the choices of rewrites of ``candidate`` are as far as their numbers tell."""

    axes: Axes
    candidate: Candidate

    def on(self, candidate: Candidate) -> NumberedChoices:
        """Return the same of another candidate."""
        return NumberedChoices(self.axes, candidate)

    def weight(self, choice: Choice) -> float | None:
        """Return how promising a choice is; ``None`` where nothing was tried along its axis."""
        weight = self.axes.weight(self.place(choice))
        return weight if weight is None or choice not in self._finer else weight * _FINER

    def place(self, choice: Choice) -> Place | None:
        """Return where a choice goes; ``None`` if it changes more than numbers, or none."""
        if choice not in self._places:
            self._places[choice] = place_of(changes_by(choice.edits, self.candidate))
        return self._places[choice]

    def with_finer(self, site: Site) -> Site:
        """Return a site with steps half as wide beside those of its choices that are known."""
        places = {choice: place for choice in site.choices if (place := self.place(choice)) is not None}
        finer: list[Choice] = []
        for choice, place in places.items():
            offered = [other.wanted for other in places.values() if other.axis == place.axis]
            wanted = _half_way(place, offered, self.axes.tried(place.axis))
            if wanted is not None:
                finer.append(_with_numbers(choice, dict(zip(place.wanted, wanted, strict=True))))
        self._finer.update(finer)
        return Site(site.label, (*site.choices, *finer), site.covers_all) if finer else site

    @cached_property
    def _finer(self) -> set[Choice]:
        return set()

    @cached_property
    def _places(self) -> dict[Choice, Place | None]:
        return {}


@dataclass(frozen=True)
class WithNumbers:
    """Preferences that look at numbers, and offer finer ones.

    Attributes:
        numbers: which of them are promising.
    """

    numbers: NumberedChoices

    def on(self, candidate: Candidate) -> Self:
        """Return the preferences about rewrites of ``candidate``."""
        return replace(self, numbers=self.numbers.on(candidate))

    def sites_of(self, rule: Rule, candidate: Candidate) -> list[Site]:
        """Return the places of a rule, with finer steps beside those that are known."""
        return [self.numbers.with_finer(site) for site in rule.sites(candidate)]


def _half_way(place: Place, offered: Iterable[Numbers], tried: Iterable[Numbers]) -> Numbers | None:
    """Return numbers between the present ones and those at a place, the next to them that are known.

    ``None`` if a nearer place is known or offered, or there is nothing between.
    """
    known = set(tried)
    here, there = size_of(place.present), size_of(place.wanted)
    is_next = all(
        abs(size_of(numbers) - here) >= abs(there - here)
        for numbers in {*offered, *known}
        if (size_of(numbers) - here) * (there - here) > 0
    )
    if not is_next or place.wanted not in known or not place.present:
        return None
    middle = tuple(_middle(*pair) for pair in zip(place.present, place.wanted, strict=True))
    return middle if middle not in (place.present, place.wanted) else None


def _middle(one: int, other: int) -> int:
    """Return the geometric mean, as round a number as possible; one less of numbers that are one less."""
    if one == other or not one * other:
        return other
    less = one % 2 * (other % 2) if min(one, other) > 1 else 0
    mean = math.sqrt((one + less) * (other + less))
    unit = 1 << max(0, int(math.log2(mean)) - 2)
    return max(1, round(mean / unit) * unit) - less


def _with_numbers(choice: Choice, wanted: Mapping[int, int]) -> Choice:
    """Return a choice with other numbers in its edits and its label."""

    def replaced(text: str) -> str:
        return _NUMBER.sub(lambda match: str(wanted.get(int(match[0]), match[0])), text)

    edits = tuple(
        FileEdit(each.path, Edit(each.edit.start_byte, each.edit.end_byte, replaced(each.edit.text)))
        for each in choice.edits
    )
    before, arrow, after = choice.label.rpartition(" -> ")
    return Choice(f"{before}{arrow}{replaced(after)}", edits, choice.forward)


def hopeful(weight: float) -> float:
    """Return the weight of numbers, or nothing if all that is known speaks against them."""
    return weight if weight > _BEYOND_A_LOSS else 0.0


def offers_numbers(sites: Iterable[Site]) -> bool:
    """Say whether a rule offers several choices at one of the places."""
    return any(len(site.choices) > 1 for site in sites)


def size_of(numbers: Numbers) -> float:
    """Return a measure by which places along an axis are ordered; without numbers comes first."""
    return sum(math.log(number + 1.0) for number in numbers) if numbers else -1.0
