"""What attempts teach of rules: those that gained nothing are tried less and less."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ascend_gym.search.llm.offline.attempts import ShownAttempt

_TELLING_GAIN = 0.003
_TELLING_LOSS = 0.02
_MUCH_LOST = 3.0  # attempts in vain that one with such a loss counts for
_FAILED = 2.0  # attempts in vain that one counts for that failed with this rule alone
_AFTER_A_FAILURE = 0.3
_HOPELESS = 0.05  # weight after three attempts in vain: where half of the cores are slower, so is a quarter
_HELPED = 2.0  # at another place it may help as well
_AFTER_A_NUMBER = 0.7


@dataclass(frozen=True)
class Lessons:
    """How often rules were tried in vain.

    Attributes:
        in_vain: by rule, how many attempts gained nothing since one gained. An attempt with several rules
            counts as a share for each, unless it had no effect at all. One counts for several that lost much
            or failed with this rule alone, or was valid at all places of the rule and gained at none.
        alone: by rule, how many attempts with it alone gained nothing since one gained.
    """

    in_vain: Mapping[str, float]
    alone: Mapping[str, int]

    def weight(self, rule: str, *, has_numbers: bool = False) -> float:
        """Return how promising a rule is; 1 where nothing is known of it, more where it helped last.

        Args:
            rule: its name.
            has_numbers: whether it offers several numbers at one place. Then one in vain says little of the
                others, and which way they go is told by their axis.
        """
        if rule not in self.in_vain:
            return 1.0
        if has_numbers:
            return float(_AFTER_A_NUMBER ** self.alone[rule])
        return _HELPED if not self.in_vain[rule] else float(_AFTER_A_FAILURE ** self.in_vain[rule])

    def was_tried(self, rule: str) -> bool:
        """Say whether any attempt applied a rule."""
        return rule in self.in_vain

    def gained_last(self, rule: str) -> bool:
        """Say whether the last attempt with a rule gained."""
        return self.in_vain.get(rule) == 0.0

    def is_hopeless(self, rule: str) -> bool:
        """Say whether a rule was in vain so often that others come first."""
        return float(_AFTER_A_FAILURE ** self.in_vain.get(rule, 0.0)) < _HOPELESS


def lessons_of(attempts: Iterable[ShownAttempt]) -> Lessons:
    """Read the lessons out of attempts, in order.

    A first version gained: there was none before.
    """
    in_vain: dict[str, float] = defaultdict(float)
    alone: dict[str, int] = defaultdict(int)
    for attempt in attempts:
        gained = attempt.kept and (attempt.gain is None or attempt.gain > _TELLING_GAIN)
        for rule in attempt.rules:
            in_vain[rule] = 0.0 if gained else in_vain[rule] + _loss(attempt, rule)
            alone[rule] = 0 if gained else alone[rule] + (len(attempt.rules) == 1)
    return Lessons(in_vain, alone)


def _loss(attempt: ShownAttempt, rule: str) -> float:
    """Return for how many attempts in vain one counts."""
    alone = len(attempt.rules) == 1
    if rule in attempt.everywhere and (attempt.without_effect or (alone and not attempt.failed)):
        return _MUCH_LOST
    if attempt.without_effect:
        return 1.0
    if alone and attempt.failed:
        return _FAILED
    return _MUCH_LOST if alone and (attempt.gain or 0.0) < -_TELLING_LOSS else 1.0 / len(attempt.rules)
