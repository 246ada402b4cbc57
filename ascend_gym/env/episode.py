"""The state of one episode and its transitions: pure data, no evaluator and no gymnasium."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ascend_gym.core.records import Candidate, EvalResult, OpSpec
from ascend_gym.core.status import RewardRule, rule_of
from ascend_gym.env.reward import Outcome


@dataclass(frozen=True)
class Attempt:
    """One charged evaluation.

    Attributes:
        move: number of the action, where the action family numbers its actions.
        latency_us: latency of the candidate; ``None`` where it failed.
        incumbent_latency_us: best latency before it.
    """

    move: int | None
    latency_us: float | None
    incumbent_latency_us: float

    @property
    def log_gain(self) -> float | None:
        """The logarithm of how many times as fast as the incumbent it was; ``None`` where it failed."""
        return math.log(self.incumbent_latency_us / self.latency_us) if self.latency_us else None

    @property
    def improved(self) -> bool:
        """Whether it gave a new incumbent."""
        return self.latency_us is not None and self.latency_us < self.incumbent_latency_us


@dataclass(frozen=True)
class Episode:
    """Where an episode stands.

    Attributes:
        spec: the operator.
        budget: evaluations that may be charged.
        spent: evaluations charged so far.
        baseline_latency_us: latency of the operator's own sources.
        incumbent: the fastest correct candidate so far; at first the operator's own sources, or the skeleton
            of an operator without any, which the first correct candidate replaces however fast it is.
        incumbent_result: its evaluation, always ok.
        last_candidate: what was evaluated last.
        last_result: its evaluation.
        neutral_in_a_row: how many evaluations in a row said nothing about their candidate.
        incumbent_vector: the action that led to the incumbent, in numbers; ``None`` without one.
        improved: whether the last evaluation gave a new incumbent.
        attempts: the charged evaluations in turn.
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
    attempts: tuple[Attempt, ...] = ()

    @classmethod
    def start(cls, spec: OpSpec, budget: int, baseline_result: EvalResult) -> Episode:
        """Begin with the operator's own sources as incumbent; their evaluation is not charged.

        Raises:
            ValueError: the baseline was not measured, so that there is nothing to compare with.
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
    def is_unwritten(self) -> bool:
        """Whether the operator has no sources, and no candidate was correct yet."""
        return not self.spec.has_sources and self.incumbent.digest == self.spec.baseline.digest

    @property
    def best_latency_us(self) -> float:
        """Latency that a candidate has to beat, in microseconds: of the incumbent.

        Without sources it is at most that of the framework calls, so that what is slower earns nothing.
        """
        incumbent_us = _measured_latency_us(self.incumbent_result)
        return incumbent_us if self.spec.has_sources else min(incumbent_us, self.baseline_latency_us)

    @property
    def speedup(self) -> float:
        """Latency of the baseline over that of the incumbent; at least 1."""
        return self.baseline_latency_us / self.best_latency_us

    @property
    def budget_left(self) -> int:
        """Evaluations that may still be charged."""
        return self.budget - self.spent

    def outcome(self, result: EvalResult) -> Outcome:
        """Return what a reward function may know of ``result``, the evaluation of the next candidate."""
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
        """Return the episode after ``candidate`` was evaluated: faster and correct makes it the incumbent.

        Args:
            candidate: what was evaluated.
            result: its evaluation.
            vector: the action that stands for it, in numbers.
            move: the number of that action, where it has one.

        Raises:
            ValueError: the budget is spent.
        """
        if self.budget_left <= 0:
            raise ValueError(f"the budget of {self.budget} evaluations is spent")
        rule = rule_of(result.status)
        attempt = Attempt(move, result.latency_us, self.best_latency_us)
        better = result.latency_us is not None and (
            self.is_unwritten or result.latency_us < _measured_latency_us(self.incumbent_result)
        )
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
