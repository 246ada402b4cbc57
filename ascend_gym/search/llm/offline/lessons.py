"""What became of the rules that were attempted: those that gained nothing are tried less and less.

What lost much counts as several attempts that made no difference: where half of the cores are slower,
a quarter of them need not be tried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ascend_gym.search.llm.offline.attempts import Attempt
from ascend_gym.search.llm.offline.trends import is_of_one_number

_TELLING_GAIN = 0.003
_TELLING_LOSS = 0.02
_MUCH_LOST = 3.0  # attempts in vain that one with such a loss counts for
_AFTER_A_FAILURE = 0.3


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
