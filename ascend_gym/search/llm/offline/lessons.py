"""What attempts teach: rules that gained nothing are tried less and less, numbers go on where that helped."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ascend_gym.search.llm.offline.attempts import Attempt

_TELLING_GAIN = 0.003
_TELLING_LOSS = 0.02
_MUCH_LOST = 3.0  # attempts in vain that one with such a loss counts for
_AFTER_A_FAILURE = 0.3

_NUMBER_CHANGE = re.compile(r"(\w+): (\d+)\w* -> (\d+)\w*")
_ASSIGNED = re.compile(r"(\w+)\s*(?:=|\s)\s*(\d+)[uUlL]*\s*;?$")
_ON = 2.0
_NOT_AGAIN = 0.1


@dataclass(frozen=True)
class Lessons:
    """How often rules were tried in vain.

    Attributes:
        in_vain: by rule, how many attempts gained nothing since one gained; an attempt with several rules
            counts as a share for each, and one that lost much for several.
    """

    in_vain: Mapping[str, float]

    def weight(self, rule: str) -> float:
        """Return how promising a rule is; 1 where nothing speaks against it."""
        return float(_AFTER_A_FAILURE ** self.in_vain.get(rule, 0.0))


def lessons_of(attempts: Iterable[Attempt]) -> Lessons:
    """Read the lessons out of attempts, in order; which way numbers go is told by their trends."""
    in_vain: dict[str, float] = defaultdict(float)
    for attempt in attempts:
        if is_of_one_number(attempt):
            continue
        for rule in attempt.rules:
            gained = attempt.kept and attempt.gain > _TELLING_GAIN
            lost = _MUCH_LOST if attempt.gain < -_TELLING_LOSS else 1.0
            in_vain[rule] = 0.0 if gained else in_vain[rule] + lost / len(attempt.rules)
    return Lessons(in_vain)


@dataclass(frozen=True)
class Trends:
    """How attempts with one number changed alone went.

    Attributes:
        helped: by name and direction (up is ``True``), whether the last such attempt was kept.
    """

    helped: Mapping[tuple[str, bool], bool]

    def weight(self, label: str) -> float:
        """Return how promising ``NAME: old -> new`` is; 1 for what nothing is known of."""
        match = _NUMBER_CHANGE.fullmatch(label)
        if match is None:
            return 1.0
        helped = self.helped.get((match[1], int(match[3]) > int(match[2])))
        return 1.0 if helped is None else _ON if helped else _NOT_AGAIN


def trends_of(attempts: Iterable[Attempt]) -> Trends:
    """Read the trends out of attempts, in order."""
    helped: dict[tuple[str, bool], bool] = {}
    for attempt in attempts:
        if is_of_one_number(attempt):
            new = _values(attempt, "+")
            ((name, before),) = _values(attempt, "-").items()
            helped[name, new[name] > before] = attempt.kept
    return Trends(helped)


def is_of_one_number(attempt: Attempt) -> bool:
    """Say whether an attempt changed one number alone."""
    old, new = _values(attempt, "-"), _values(attempt, "+")
    return len(attempt.changes) == 2 and len(old) == 1 and set(old) == set(new)


def _values(attempt: Attempt, sign: str) -> dict[str, int]:
    """Return the numbers that removed or added lines give to names."""
    code = (change[1:].split("//")[0].strip() for change in attempt.changes if change[0] == sign)
    found = (_ASSIGNED.search(line) for line in code)
    return {match[1]: int(match[2]) for match in found if match}
