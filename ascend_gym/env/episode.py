"""State of an episode and its transitions: pure data, without evaluator or gymnasium."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ascend_gym.core.best import becomes_best, is_unwritten
from ascend_gym.core.records import Candidate, EvalResult, OpSpec
from ascend_gym.core.status import RewardRule, rule_of
from ascend_gym.env.reward import Outcome


@dataclass(frozen=True)
class PastEvaluation:
    """One charged evaluation.

    Attributes:
        move: number of the action, if the action family numbers its actions.
        latency_us: latency of the candidate in microseconds; ``None`` if it failed.
        incumbent_latency_us: best latency before it, in microseconds.
        improved: whether the candidate became the incumbent; the first correct one of an operator without
            sources does, whatever its latency.
    """

    move: int | None
    latency_us: float | None
    incumbent_latency_us: float
    improved: bool

    @property
    def log_gain(self) -> float | None:
        """Natural logarithm of the speedup over the incumbent; ``None`` if the candidate failed."""
        return math.log(self.incumbent_latency_us / self.latency_us) if self.latency_us else None


@dataclass(frozen=True)
class Episode:
    """State of an episode.

    Attributes:
        spec: operator.
        budget: number of evaluations that may be charged.
        spent: evaluations charged so far.
        baseline_latency_us: latency of the operator's own sources, in microseconds.
        incumbent: fastest correct candidate so far; initially the operator's own sources, or the skeleton
            of an operator without sources, which the first correct candidate replaces whatever its latency.
        incumbent_result: evaluation of the incumbent, always ok.
        last_candidate: candidate that was evaluated last.
        last_result: its evaluation.
        neutral_in_a_row: number of consecutive evaluations without a verdict on their candidate.
        incumbent_vector: numeric encoding of the action that led to the incumbent; ``None`` without one.
        improved: whether the last candidate became the incumbent.
        attempts: charged evaluations in order.
    """

    spec: OpSpec
    budget: int
    spent: int
    baseline_latency_us: float
    incumbent: Candidate
    incumbent_result: EvalResult
    last_candidate: Candidate
    last_result: EvalResult
    neutral_in_a_row: int = 0
    incumbent_vector: Any = None
    improved: bool = False
    attempts: tuple[PastEvaluation, ...] = ()

    @classmethod
    def start(cls, spec: OpSpec, budget: int, baseline_result: EvalResult) -> Episode:
        """Begin with the operator's own sources as incumbent; their evaluation is not charged.

        Raises:
            ValueError: the baseline was not measured, so there is nothing to compare with.
        """
        return cls(
            spec=spec,
            budget=budget,
            spent=0,
            baseline_latency_us=_measured_latency_us(baseline_result),
            incumbent=spec.baseline,
            incumbent_result=baseline_result,
            last_candidate=spec.baseline,
            last_result=baseline_result,
        )

    @property
    def best_latency_us(self) -> float:
        """Latency in microseconds that a candidate has to beat: that of the incumbent.

        Without sources it is at most that of the framework calls, so slower candidates earn nothing.
        """
        incumbent_us = _measured_latency_us(self.incumbent_result)
        return incumbent_us if self.spec.has_sources else min(incumbent_us, self.baseline_latency_us)

    @property
    def speedup(self) -> float:
        """Latency of the baseline divided by that of the incumbent; at least 1."""
        return self.baseline_latency_us / self.best_latency_us

    @property
    def budget_left(self) -> int:
        """Evaluations that may still be charged."""
        return self.budget - self.spent

    def outcome(self, result: EvalResult) -> Outcome:
        """Return the input of the reward function for ``result``, the evaluation of the next candidate."""
        return Outcome(
            status=result.status,
            latency_us=result.latency_us,
            incumbent_latency_us=self.best_latency_us,
            baseline_latency_us=self.baseline_latency_us,
            is_last=self.spent + rule_of(result.status).charged >= self.budget,
            floor_us=self.incumbent_result.floor_us,
        )

    def after(
        self, candidate: Candidate, result: EvalResult, vector: Any = None, move: int | None = None
    ) -> Episode:
        """Return the episode after an evaluation; a correct, faster candidate becomes the incumbent.

        Args:
            candidate: evaluated candidate.
            result: its evaluation.
            vector: numeric encoding of the action that produced it.
            move: number of that action, if it has one.

        Raises:
            ValueError: the budget is spent.
        """
        if self.budget_left <= 0:
            raise ValueError(f"the budget of {self.budget} evaluations is spent")
        rule = rule_of(result.status)
        best_us = _measured_latency_us(self.incumbent_result)
        unwritten = is_unwritten(self.spec, self.incumbent)
        better = becomes_best(result.latency_us, best_us, unwritten=unwritten)
        attempt = PastEvaluation(move, result.latency_us, self.best_latency_us, better)
        return replace(
            self,
            spent=self.spent + rule.charged,
            incumbent=candidate if better else self.incumbent,
            incumbent_result=result if better else self.incumbent_result,
            improved=better,
            incumbent_vector=vector if better else self.incumbent_vector,
            attempts=(*self.attempts, attempt) if rule.charged else self.attempts,
            last_candidate=candidate,
            last_result=result,
            neutral_in_a_row=self.neutral_in_a_row + 1 if rule.reward is RewardRule.NEUTRAL else 0,
        )


def _measured_latency_us(result: EvalResult) -> float:
    latency_us = result.latency_us
    if latency_us is None:
        raise ValueError(f"an evaluation that ended as {result.status.value} has no latency")
    return latency_us
