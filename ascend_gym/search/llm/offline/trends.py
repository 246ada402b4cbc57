"""Which way numbers should go, by what was attempted: on where that helped, not again where it did not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ascend_gym.search.llm.offline.attempts import Attempt

_NUMBER_CHANGE = re.compile(r"(\w+): (\d+)\w* -> (\d+)\w*")
_ASSIGNED = re.compile(r"(\w+)\s*(?:=|\s)\s*(\d+)[uUlL]*\s*;?$")
_ON = 2.0
_NOT_AGAIN = 0.1


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
