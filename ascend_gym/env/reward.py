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
        floor_us: what no candidate can be faster than, on average over the cases as the latencies are;
            ``None`` where the backend knows none.
    """

    status: Status
    latency_us: float | None
    incumbent_latency_us: float
    baseline_latency_us: float
    is_last: bool = False
    floor_us: float | None = None


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


def hap(outcome: Outcome, failure_penalty: float = 0.0) -> float:
    """Return how much of what the hardware allows is achieved: r = L_floor / L_candidate, at most 1.

    L_floor is the roofline bound of the case's compulsory traffic (Williams, Waterman, Patterson: Roofline,
    CACM 52(4), 2009), the same for all candidates, so that moving more bytes earns nothing. The ratio is the
    "speed of light" share by which benchmarks such as SOL-ExecBench (arXiv 2603.19173) score distance to the
    hardware; the paper on AscendOptimizer has no such figure. ``-failure_penalty`` for a candidate that
    failed, and 0 where the status blames nobody's candidate.

    Raises:
        MisuseError: the backend knows no floor.
    """
    if outcome.latency_us is None:
        return _without_latency(outcome, -failure_penalty)
    if outcome.floor_us is None:
        raise MisuseError("reward='hap' needs results with floor_us: this backend tells none, choose another")
    return outcome.floor_us / outcome.latency_us


def _without_latency(outcome: Outcome, of_a_failure: float) -> float:
    return 0.0 if rule_of(outcome.status).reward is RewardRule.NEUTRAL else of_a_failure


REWARDS: Mapping[str, Callable[..., float]] = MappingProxyType(
    {
        "log_improvement": log_improvement,
        "speedup": speedup,
        "negative_latency": negative_latency,
        "final_log_speedup": final_log_speedup,
        "hap": hap,
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
