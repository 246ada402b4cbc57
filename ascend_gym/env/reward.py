"""Reward functions: pure functions of an evaluation's outcome and the incumbent."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.status import RewardRule, Status, rule_of


@dataclass(frozen=True)
class Outcome:
    """What a reward function may know.

    Attributes:
        status: how the evaluation of the candidate ended.
        latency_us: latency of the candidate; ``None`` unless the status is ok.
        incumbent_latency_us: best latency before this evaluation.
        baseline_latency_us: latency of the operator's own sources.
        is_last: whether this evaluation spends the budget.
    """

    status: Status
    latency_us: float | None
    incumbent_latency_us: float
    baseline_latency_us: float
    is_last: bool = False


RewardFunction = Callable[[Outcome], float]
"""What an environment calls after each evaluation, whatever its status."""


def log_improvement(outcome: Outcome, failure_penalty: float = 0.0) -> float:
    """Return the logarithm of the improvement over the incumbent.

    With L the latencies, for a correct candidate::

        r = max(0, ln(L_incumbent / L_candidate))

    ``-failure_penalty`` for a candidate that failed, and 0 where the status blames nobody's candidate.
    A faster candidate becomes the incumbent, so that without penalties the undiscounted return of an
    episode telescopes to ln(L_baseline / L_best), the logarithm of the final speedup.
    """
    if outcome.latency_us is None:
        return _without_latency(outcome, -failure_penalty)
    return max(0.0, math.log(outcome.incumbent_latency_us / outcome.latency_us))


def speedup(outcome: Outcome, failure_penalty: float = 0.0) -> float:
    """Return how many times as fast as the baseline the candidate is: r = L_baseline / L_candidate.

    ``-failure_penalty`` for a candidate that failed, and 0 where the status blames nobody's candidate.
    """
    if outcome.latency_us is None:
        return _without_latency(outcome, -failure_penalty)
    return outcome.baseline_latency_us / outcome.latency_us


def negative_latency(outcome: Outcome, failure_penalty: float = 0.0) -> float:
    """Return the latency relative to the baseline's as a cost: r = -L_candidate / L_baseline.

    A candidate that failed costs as much as the baseline, r = -1 - ``failure_penalty``: failing is never
    better than leaving the sources as they are. 0 where the status blames nobody's candidate.
    """
    if outcome.latency_us is None:
        return _without_latency(outcome, -1.0 - failure_penalty)
    return -outcome.latency_us / outcome.baseline_latency_us


def final_log_speedup(outcome: Outcome, failure_penalty: float = 0.0) -> float:
    """Return the logarithm of the final speedup when the budget is spent, and 0 before: a sparse reward.

    At the last evaluation, with the candidate itself among the best::

        r = ln(L_baseline / L_best)

    A candidate that failed costs ``failure_penalty`` besides, at any time.
    """
    failed = rule_of(outcome.status).reward is RewardRule.FAILURE
    best_us = min(outcome.incumbent_latency_us, outcome.latency_us or math.inf)
    final = math.log(outcome.baseline_latency_us / best_us) if outcome.is_last else 0.0
    return final - (failure_penalty if failed else 0.0)


def _without_latency(outcome: Outcome, of_a_failure: float) -> float:
    return 0.0 if rule_of(outcome.status).reward is RewardRule.NEUTRAL else of_a_failure


REWARDS: Mapping[str, Callable[..., float]] = MappingProxyType(
    {
        "log_improvement": log_improvement,
        "speedup": speedup,
        "negative_latency": negative_latency,
        "final_log_speedup": final_log_speedup,
    }
)
"""Reward functions by name: each takes an outcome and ``failure_penalty``."""


def reward_named(name: str, failure_penalty: float) -> RewardFunction:
    """Return the reward function of that name with its penalty bound.

    Raises:
        MisuseError: there is no such reward, or the penalty is negative or not finite.
    """
    if name not in REWARDS:
        raise MisuseError(f"no reward is named {name!r}; choose from {sorted(REWARDS)}")
    if not (math.isfinite(failure_penalty) and failure_penalty >= 0):
        raise MisuseError(f"failure_penalty must be finite and at least 0, got {failure_penalty}")
    function = REWARDS[name]
    return partial(function, failure_penalty=failure_penalty)
