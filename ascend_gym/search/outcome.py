"""What a search proposes, observes and finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ascend_gym.core.best import is_unwritten, speedup
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Proposal
from ascend_gym.core.records import Candidate, EvalResult, OpSpec
from ascend_gym.search.ledger import Cost

BASELINE_ORIGIN = {"kind": "baseline"}


@dataclass(frozen=True)
class UnusableProposal(Proposal):
    """A proposal whose model answer could not be turned into a candidate.

    It is spent like an evaluation that fails to build: one evaluation, no device time, and nothing is
    submitted. ``candidate`` is the one that the answer was meant to rewrite.

    Attributes:
        problem: what was wrong with the answer.
    """

    problem: str


class MethodFailedError(MisuseError):
    """A search method from outside the package raised what none may raise."""


class StopReason(str, Enum):
    """Why a search ended."""

    BUDGET_SPENT = "budget_spent"
    STRATEGY_FINISHED = "strategy_finished"
    BASELINE_FAILED = "baseline_failed"
    NO_GAIN = "no_gain"
    INFRASTRUCTURE = "infrastructure"
    MODEL_REFUSED = "model_refused"
    INTERRUPTED = "interrupted"
    METHOD_FAILED = "method_failed"


RESUMABLE = frozenset(
    {
        StopReason.INFRASTRUCTURE,
        StopReason.MODEL_REFUSED,
        StopReason.INTERRUPTED,
        StopReason.METHOD_FAILED,
    }
)
"""Reasons after which the same search can go on from its journal."""


@dataclass(frozen=True)
class Step:
    """One observed evaluation.

    Attributes:
        index: number of the proposal; 0 is the baseline.
        proposal: what was evaluated.
        result: how it ended.
        improved: whether it became the best.
        first_correct: whether it became the best as the first correct candidate of an operator without
            sources, even if it is slower than the framework calls.
        best_latency_us: latency of the best candidate after this step; ``None`` without a measured baseline.
        spent: what the ledger had charged after this step.
    """

    index: int
    proposal: Proposal
    result: EvalResult
    improved: bool
    best_latency_us: float | None
    spent: Cost
    first_correct: bool = False


@dataclass(frozen=True)
class SearchOutcome:
    """What a search found.

    Attributes:
        spec: the operator.
        best: the fastest correct candidate; the baseline if nothing beat it.
        best_result: its evaluation.
        history: every observed evaluation in proposal order, the baseline first; empty if the evaluator
            broke, or a person interrupted, before the baseline was evaluated.
        spent: what was charged.
        stop_reason: why the search ended.
        message: what a person should know about ``stop_reason``; empty when all went well.
    """

    spec: OpSpec
    best: Candidate
    best_result: EvalResult | None
    history: tuple[Step, ...]
    spent: Cost
    stop_reason: StopReason
    message: str

    @property
    def baseline(self) -> EvalResult | None:
        """Evaluation of the operator's own sources."""
        return self.history[0].result if self.history else None

    @property
    def baseline_latency_us(self) -> float | None:
        """Geometric mean over the cases of the baseline's latency."""
        return self.baseline.latency_us if self.baseline else None

    @property
    def is_unwritten(self) -> bool:
        """Whether the operator has no sources and no candidate was correct."""
        return is_unwritten(self.spec, self.best)

    @property
    def best_latency_us(self) -> float | None:
        """Geometric mean over the cases of the best candidate's latency; ``None`` if there is none."""
        return self.best_result.latency_us if self.best_result and not self.is_unwritten else None

    @property
    def speedup(self) -> float | None:
        """Latency of the baseline over that of the best; ``None`` without either.

        At least 1, but for an operator without sources: its best may be slower than the framework calls.
        """
        return speedup(self.baseline_latency_us, self.best_latency_us)

    @property
    def evaluations(self) -> int:
        """Evaluations charged; the baseline is not among them."""
        return self.spent.evaluations
