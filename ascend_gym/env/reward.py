"""Reward functions: pure functions of an evaluation's outcome and the incumbent.

There are two kinds; in both, a failed candidate never earns more than a correct one. *Improvement* rewards
depend on progress: the undiscounted return of an episode is a function of its baseline and its best latency
only. A candidate that is not faster than the incumbent adds nothing. *Rating* rewards rate each candidate on
its own: repeating the incumbent is rewarded at every step, so in long episodes an agent may gain by no longer
searching. They suit episodes of one evaluation, bandits and the comparison of single answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.status import RewardRule, Status, rule_of


@dataclass(frozen=True)
class Outcome:
    """Input of a reward function.

    Attributes:
        status: outcome of the candidate's evaluation.
        latency_us: latency of the candidate in microseconds; ``None`` unless the status is ok.
        incumbent_latency_us: best latency before this evaluation, in microseconds.
        baseline_latency_us: latency of the operator's own sources, in microseconds.
        is_last: whether this evaluation spends the budget.
        floor_us: lower bound of any candidate's latency in microseconds, averaged over the cases like the
            latencies; ``None`` if the backend has none.
    """

    status: Status
    latency_us: float | None
    incumbent_latency_us: float
    baseline_latency_us: float
    is_last: bool = False
    floor_us: float | None = None


MAX_SLOWDOWN = 10.0
"""Multiple of the baseline's latency beyond which ``negative_latency`` rates correct candidates equally."""

RewardFunction = Callable[[Outcome], float]
"""Function that an environment calls after each evaluation, whatever its status."""


def log_improvement(outcome: Outcome, failure_penalty: float = 0.0) -> float:
    """Return the logarithm of the improvement over the incumbent.

    With latencies L, for a correct candidate::

        r = max(0, ln(L_incumbent / L_candidate))

    A failed candidate earns ``-failure_penalty``, and an evaluation without a verdict on the candidate 0.
    A faster candidate becomes the incumbent, so without penalties the undiscounted return of an
    episode telescopes to ln(L_baseline / L_best), the logarithm of the final speedup.
    """
    if outcome.latency_us is None:
        return _without_latency(outcome, 0.0 - failure_penalty)
    return max(0.0, math.log(outcome.incumbent_latency_us / outcome.latency_us))


def speedup(outcome: Outcome, failure_penalty: float = 0.0) -> float:
    """Rate the candidate by its speedup over the baseline: r = L_baseline / L_candidate.

    A failed candidate earns ``-failure_penalty``, and an evaluation without a verdict on the candidate 0.
    """
    if outcome.latency_us is None:
        return _without_latency(outcome, 0.0 - failure_penalty)
    return outcome.baseline_latency_us / outcome.latency_us


def speedup_gain(outcome: Outcome, failure_penalty: float = 0.0) -> float:
    """Return the increase of the speedup over the baseline.

    For a correct candidate::

        r = max(0, L_baseline / L_candidate - L_baseline / L_incumbent)

    Failures and evaluations without a verdict as for ``speedup``. Without penalties the undiscounted return
    of an episode is its final speedup minus 1.
    """
    return _gain(speedup, outcome, failure_penalty)


def negative_latency(outcome: Outcome, failure_penalty: float = 0.0) -> float:
    """Rate the candidate by its latency relative to the baseline's, as a cost.

    For a correct candidate::

        r = -min(L_candidate / L_baseline, MAX_SLOWDOWN)

    A failed candidate costs more than every correct one,
    r = -(``MAX_SLOWDOWN`` + 1) - ``failure_penalty``. An evaluation without a verdict on the candidate earns
    0.
    """
    if outcome.latency_us is None:
        return _without_latency(outcome, -(MAX_SLOWDOWN + 1.0) - failure_penalty)
    return -min(outcome.latency_us / outcome.baseline_latency_us, MAX_SLOWDOWN)


def final_log_speedup(outcome: Outcome, failure_penalty: float = 0.0) -> float:
    """Return the logarithm of the final speedup at the last evaluation, and 0 before: a sparse reward.

    At the last evaluation, where the candidate itself may be the best::

        r = ln(L_baseline / L_best)

    A failed candidate additionally costs ``failure_penalty``, at any step.
    """
    failed = rule_of(outcome.status).reward is RewardRule.FAILURE
    best_us = min(outcome.incumbent_latency_us, outcome.latency_us or math.inf)
    final = math.log(outcome.baseline_latency_us / best_us) if outcome.is_last else 0.0
    return final - (failure_penalty if failed else 0.0)


def hap(outcome: Outcome, failure_penalty: float = 0.0) -> float:
    """Rate the candidate by its share of the hardware's limit: r = L_floor / L_candidate, at most 1.

    L_floor is the roofline bound of the case's compulsory traffic (Williams, Waterman,
    Patterson: Roofline, CACM 52(4), 2009). It is the same for all candidates, so moving more bytes earns
    nothing. The ratio is the "speed of light" share by which benchmarks such as SOL-ExecBench (arXiv
    2603.19173) score distance to the hardware; the paper on AscendOptimizer has no such metric.
    A failed candidate earns ``-failure_penalty``, and an evaluation without a verdict on the candidate 0.

    Raises:
        MisuseError: the backend has no floor.
    """
    if outcome.latency_us is None:
        return _without_latency(outcome, 0.0 - failure_penalty)
    if outcome.floor_us is None:
        raise MisuseError(
            "rewards hap and hap_gain need floor_us, which this backend lacks: choose another reward"
        )
    return outcome.floor_us / outcome.latency_us


def hap_gain(outcome: Outcome, failure_penalty: float = 0.0) -> float:
    """Return the increase of the share of the hardware's limit.

    For a correct candidate::

        r = max(0, L_floor / L_candidate - L_floor / L_incumbent)

    Failures and evaluations without a verdict as for ``hap``. Without penalties the undiscounted return of an
    episode is L_floor / L_best - L_floor / L_baseline.

    Raises:
        MisuseError: the backend has no floor.
    """
    return _gain(hap, outcome, failure_penalty)


def _gain(rating: Callable[..., float], outcome: Outcome, failure_penalty: float) -> float:
    """Return the rating of a correct candidate minus that of the incumbent; failures keep their rating."""
    rated = rating(outcome, failure_penalty)
    if outcome.latency_us is None:
        return rated
    return max(0.0, rated - rating(replace(outcome, latency_us=outcome.incumbent_latency_us)))


def _without_latency(outcome: Outcome, of_a_failure: float) -> float:
    return 0.0 if rule_of(outcome.status).reward is RewardRule.NEUTRAL else of_a_failure


IMPROVEMENT_REWARDS: Mapping[str, Callable[..., float]] = MappingProxyType(
    {
        "log_improvement": log_improvement,
        "speedup_gain": speedup_gain,
        "hap_gain": hap_gain,
        "final_log_speedup": final_log_speedup,
    }
)
"""Rewards by name under which doing nothing adds nothing to the return of an episode."""

RATING_REWARDS: Mapping[str, Callable[..., float]] = MappingProxyType(
    {"speedup": speedup, "negative_latency": negative_latency, "hap": hap}
)
"""Rewards by name that rate each candidate on its own, so repeating the incumbent is rewarded again."""

REWARDS: Mapping[str, Callable[..., float]] = MappingProxyType({**IMPROVEMENT_REWARDS, **RATING_REWARDS})
"""Reward functions by name: each takes an outcome and ``failure_penalty``."""


def reward_named(name: str, failure_penalty: float) -> RewardFunction:
    """Return the reward function with the given name and penalty.

    Raises:
        MisuseError: the reward does not exist, or the penalty is negative or not finite.
    """
    if name not in REWARDS:
        raise MisuseError(f"no reward is named {name!r}; choose from {sorted(REWARDS)}")
    if not (math.isfinite(failure_penalty) and failure_penalty >= 0):
        raise MisuseError(f"failure_penalty must be finite and at least 0, got {failure_penalty}")
    function = REWARDS[name]
    return partial(function, failure_penalty=failure_penalty)
