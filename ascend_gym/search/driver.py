"""The loop that every search method runs in: propose, evaluate, observe, under one ledger and journal.

The outcome depends on the operator, the method and its seed, not on how many evaluations are in flight:
results are observed, charged and journalled in the order of the proposals, whichever finishes first.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.protocols import Evaluator, Proposal, Strategy
from ascend_gym.core.records import (
    Candidate,
    Charge,
    Diagnostic,
    EvalRequest,
    EvalResult,
    MeasureProtocol,
    OpSpec,
    Phase,
    failed_result,
)
from ascend_gym.core.status import RewardRule, Status, rule_of
from ascend_gym.search.interrupts import interrupts_held_back
from ascend_gym.search.journal import Journal
from ascend_gym.search.ledger import Budget, BudgetLedger, Reservation
from ascend_gym.suite.requests import request_for

INFRA_ATTEMPTS = 3
NEUTRAL_LIMIT = 3
DEVICE_SECONDS_SLACK = 2.0  # a run that is stopped at its time limit ends a little later
BASELINE_ORIGIN = {"kind": "baseline"}

_POLL_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class UnusableProposal(Proposal):
    """A proposal whose model answer could not be turned into a candidate.

    It is spent like an evaluation that fails to build: one evaluation, no device time, and nothing is
    submitted. ``candidate`` is the one that the answer was meant to rewrite.

    Attributes:
        problem: what was wrong with the answer.
    """

    problem: str


class StopReason(str, Enum):
    """Why a search ended."""

    BUDGET_SPENT = "budget_spent"
    STRATEGY_FINISHED = "strategy_finished"
    BASELINE_FAILED = "baseline_failed"
    INFRASTRUCTURE = "infrastructure"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Step:
    """One observed evaluation.

    Attributes:
        index: number of the proposal; 0 is the baseline.
        proposal: what was evaluated.
        result: how it ended.
        improved: whether it became the best.
        best_latency_us: latency of the best candidate after this step; ``None`` without a measured baseline.
        spent: what the ledger had charged after this step.
    """

    index: int
    proposal: Proposal
    result: EvalResult
    improved: bool
    best_latency_us: float | None
    spent: Charge


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
    spent: Charge
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
    def best_latency_us(self) -> float | None:
        """Geometric mean over the cases of the best candidate's latency."""
        return self.best_result.latency_us if self.best_result else None

    @property
    def speedup(self) -> float | None:
        """Latency of the baseline over that of the best; at least 1; ``None`` without a measured baseline."""
        if self.baseline_latency_us is None or self.best_latency_us is None:
            return None
        return self.baseline_latency_us / self.best_latency_us

    @property
    def evaluations(self) -> int:
        """Evaluations charged; the baseline is not among them."""
        return self.spent.evaluations


def run_search(
    spec: OpSpec,
    strategy: Strategy,
    evaluator: Evaluator,
    budget: Budget,
    journal: Journal,
    *,
    in_flight: int = 1,
    on_event: Callable[[Step], None] | None = None,
    protocol: MeasureProtocol | None = None,
    settings: Mapping[str, Any] | None = None,
) -> SearchOutcome:
    """Search until the budget is spent or the strategy has nothing more to propose.

    The baseline is evaluated first, shown to the strategy as a proposal of origin ``baseline``, and not
    charged. A result is charged one evaluation when its status says so; infrastructure errors are
    submitted again up to ``INFRA_ATTEMPTS`` times in all, then observed uncharged; ``NEUTRAL_LIMIT`` such
    results in a row, a model that cannot be reached, or Ctrl-C end the search with what it has found.

    Args:
        spec: the operator.
        strategy: the method. A strategy whose proposals depend on results decides by itself how many it
            makes before it waits for them (``propose`` then returns an empty list).
        evaluator: evaluates; stays open.
        budget: what may be spent.
        journal: an empty journal.
        in_flight: evaluations submitted at a time; changes the wall time, not the outcome.
        on_event: called with each step as it is observed, the baseline first.
        protocol: how to measure.
        settings: what else identifies the run (method, model, seed ...), for the journal's header.

    Raises:
        MisuseError: the journal is not empty.
    """
    if journal.records:
        raise MisuseError(f"{journal.path} holds another run: give each search a journal of its own")
    protocol = protocol or MeasureProtocol()
    journal.header(spec, {**(settings or {}), "protocol": protocol.model_dump(mode="json")})
    search = _Search(spec, strategy, evaluator, BudgetLedger(budget), journal, protocol, on_event)
    try:
        stop_reason, message = search.run(in_flight)
    except InfrastructureError as error:
        stop_reason, message = StopReason.INFRASTRUCTURE, str(error)
    except KeyboardInterrupt:
        stop_reason, message = StopReason.INTERRUPTED, "interrupted before the budget was spent"
    finally:
        search.cancel_pending()
    outcome = search.outcome(stop_reason, message)
    with interrupts_held_back():
        journal.end(
            stop_reason=stop_reason.value,
            message=message,
            evaluations=outcome.evaluations,
            baseline_latency_us=outcome.baseline_latency_us,
            best_latency_us=outcome.best_latency_us,
            best_digest=outcome.best.digest,
        )
    return outcome


@dataclass
class _Pending:
    """A proposal on its way: ``reservation`` is ``None`` for the baseline."""

    index: int
    proposal: Proposal
    request: EvalRequest
    reservation: Reservation | None
    attempts: int = 0
    result: EvalResult | None = None


class _Search:
    """The state of one run of the loop."""

    def __init__(
        self,
        spec: OpSpec,
        strategy: Strategy,
        evaluator: Evaluator,
        ledger: BudgetLedger,
        journal: Journal,
        protocol: MeasureProtocol,
        on_event: Callable[[Step], None] | None,
    ) -> None:
        self._spec, self._strategy, self._evaluator = spec, strategy, evaluator
        self._ledger, self._journal, self._protocol = ledger, journal, protocol
        self._on_event = on_event
        self._best = spec.baseline
        self._best_result: EvalResult | None = None
        self._history: list[Step] = []
        self._queue: deque[_Pending] = deque()
        self._submitted: dict[str, _Pending] = {}
        self._proposed = 0
        self._neutral_in_a_row = 0
        self._broken = ""

    def run(self, in_flight: int) -> tuple[StopReason, str]:
        """Evaluate the baseline, then all that the strategy proposes and the budget covers."""
        self._enqueue(Proposal(self._spec.baseline, BASELINE_ORIGIN), None)
        baseline = self._observe_next().result
        if baseline.status is not Status.OK:
            neutral = rule_of(baseline.status).reward is RewardRule.NEUTRAL
            infra = neutral and baseline.status is not Status.INVALID_REQUEST
            reason = StopReason.INFRASTRUCTURE if infra else StopReason.BASELINE_FAILED
            return reason, f"the baseline ended as {baseline.status.value}: {baseline.all_diagnostics[0]}"
        self._fill(in_flight)
        while self._queue:
            self._observe_next()
            self._fill(in_flight)
        if self._broken:
            return StopReason.INFRASTRUCTURE, self._broken
        spent = not self._ledger.can_reserve(self._unit)
        return (StopReason.BUDGET_SPENT if spent else StopReason.STRATEGY_FINISHED), ""

    def cancel_pending(self) -> None:
        """Cancel what was submitted and will not be observed."""
        with contextlib.suppress(InfrastructureError):
            for request_id in self._submitted:
                self._evaluator.cancel(request_id)

    def outcome(self, stop_reason: StopReason, message: str) -> SearchOutcome:
        """Return what was found so far."""
        return SearchOutcome(
            spec=self._spec,
            best=self._best,
            best_result=self._best_result,
            history=tuple(self._history),
            spent=self._ledger.spent,
            stop_reason=stop_reason,
            message=message,
        )

    @property
    def _unit(self) -> Charge:
        """The most that one evaluation can cost; device time matters only when it is limited."""
        if self._ledger.budget.device_seconds is None:
            return Charge(evaluations=1)
        bound_s = len(self._spec.cases) * self._protocol.repeats * self._protocol.run_timeout_s
        return Charge(evaluations=1, device_seconds=bound_s * DEVICE_SECONDS_SLACK)

    def _fill(self, in_flight: int) -> None:
        """Reserve, ask and submit until ``in_flight`` proposals are on their way or no more can be."""
        while len(self._queue) < in_flight and not self._broken and self._ledger.can_reserve(self._unit):
            reservation = self._ledger.reserve(self._unit)
            try:
                proposals = self._strategy.propose(1)
            except InfrastructureError as error:
                self._broken = f"the strategy could not propose: {error}"
                proposals = []
            if not proposals:
                self._ledger.refund(reservation)
                return
            self._enqueue(proposals[0], reservation)

    def _enqueue(self, proposal: Proposal, reservation: Reservation | None) -> None:
        request = request_for(self._spec, proposal.candidate, self._protocol)
        pending = _Pending(self._proposed, proposal, request, reservation)
        self._proposed += 1
        self._queue.append(pending)
        if isinstance(proposal, UnusableProposal):
            diagnostic = Diagnostic(phase=Phase.REQUEST, message=proposal.problem)
            pending.result = failed_result(request, Status.BUILD_ERROR, diagnostic)
        else:
            self._submit(pending)

    def _submit(self, pending: _Pending) -> None:
        pending.attempts += 1
        self._submitted[self._evaluator.submit(pending.request)] = pending

    def _observe_next(self) -> Step:
        """Wait for the oldest proposal's result; charge, observe and journal it."""
        pending = self._queue[0]
        while pending.result is None:
            for request_id, result in self._evaluator.poll(_POLL_TIMEOUT_S):
                self._arrived(request_id, result)
        self._queue.popleft()
        with interrupts_held_back():
            self._settle(pending.reservation, pending.result)
            step = self._record(pending, pending.result)
        self._strategy.observe(step.proposal, step.result)
        if self._on_event is not None:
            self._on_event(step)
        return step

    def _arrived(self, request_id: str, result: EvalResult) -> None:
        pending = self._submitted.pop(request_id, None)
        if pending is None:  # cancelled earlier, or not ours
            return
        if result.request_digest != pending.request.digest:
            raise InfrastructureError(f"request {request_id} was answered with the result of another one")
        if result.status is Status.INFRA_ERROR and pending.attempts < INFRA_ATTEMPTS:
            self._submit(pending)
        else:
            pending.result = result

    def _settle(self, reservation: Reservation | None, result: EvalResult) -> None:
        if reservation is None:
            return
        if rule_of(result.status).charged:
            actual = Charge(evaluations=1, device_seconds=result.charge.device_seconds)
            self._ledger.charge(reservation, actual)
        else:
            self._ledger.refund(reservation)

    def _record(self, pending: _Pending, result: EvalResult) -> Step:
        best_us = self._best_result.latency_us if self._best_result else None
        latency_us = result.latency_us
        improved = latency_us is not None and (best_us is None or latency_us < best_us)
        if improved:
            self._best, self._best_result, best_us = pending.proposal.candidate, result, latency_us
        step = Step(pending.index, pending.proposal, result, improved, best_us, self._ledger.spent)
        self._journal.evaluated(step.index, self._spec.baseline, step.proposal, result)
        self._history.append(step)
        self._note_neutral(result)
        return step

    def _note_neutral(self, result: EvalResult) -> None:
        """Stop proposing when results keep saying nothing about their candidates."""
        neutral = rule_of(result.status).reward is RewardRule.NEUTRAL
        self._neutral_in_a_row = self._neutral_in_a_row + 1 if neutral else 0
        if self._neutral_in_a_row >= NEUTRAL_LIMIT:
            self._broken = f"{NEUTRAL_LIMIT} evaluations in a row failed: {result.all_diagnostics[0]}"
