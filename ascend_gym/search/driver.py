"""The loop that every search method runs in: propose, evaluate, observe, under one ledger and journal.

The outcome depends on the operator, the method and its seed, not on how many evaluations are in flight:
results are observed, charged and journalled in the order of the proposals, whichever finishes first.

The baseline is evaluated first, shown to the strategy as a proposal of origin ``baseline``, and not charged.
A result is charged one evaluation when its status says so; infrastructure errors are submitted again up to
``INFRA_ATTEMPTS`` times in all, then observed uncharged; ``NEUTRAL_LIMIT`` such results in a row,
``FREE_DUPLICATES_LIMIT`` free duplicates in a row, a model that cannot be reached, a method from outside the
package that fails, or Ctrl-C end the search with what it has found.

A strategy may have candidates built without an evaluation (``BuildingStrategy``). Such a build is a request
for the smallest case, of which the strategy is told what the compilers said and nothing else; it has a budget
of its own, and a resumed run does it again.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ascend_gym.core.best import becomes_best, is_unwritten
from ascend_gym.core.errors import (
    BudgetExceededError,
    InfrastructureError,
    MisuseError,
    ModelRefusedError,
)
from ascend_gym.core.interrupts import interrupts_held_back, raise_if_interrupted
from ascend_gym.core.protocols import BuildingStrategy, Evaluation, Evaluator, Proposal, Strategy
from ascend_gym.core.records import (
    Candidate,
    Diagnostic,
    EvalRequest,
    EvalResult,
    OpSpec,
    Phase,
    failed_result,
)
from ascend_gym.core.status import RewardRule, Status, rule_of
from ascend_gym.search.journal import Journal
from ascend_gym.search.ledger import BudgetLedger, Cost, Reservation
from ascend_gym.search.outcome import (
    BASELINE_ORIGIN,
    RESUMABLE,
    MethodFailedError,
    SearchOutcome,
    Step,
    StopReason,
    UnusableProposal,
)
from ascend_gym.search.search_rules import Duplicates, SearchRules
from ascend_gym.suite.requests import request_for

INFRA_ATTEMPTS = 3
_ONE_BUILD = Cost(builds=1)
NEUTRAL_LIMIT = 3
DEVICE_SECONDS_SLACK = 2.0  # a run that is stopped at its time limit ends a little later

FREE_DUPLICATES_LIMIT = 100
_ALL_KNOWN = f"the last {FREE_DUPLICATES_LIMIT} proposals were all known"

_POLL_TIMEOUT_S = 30.0


def run_search(
    spec: OpSpec,
    strategy: Strategy,
    evaluator: Evaluator,
    ledger: BudgetLedger,
    journal: Journal,
    rules: SearchRules | None = None,
    *,
    in_flight: int = 1,
    on_event: Callable[[Step], None] | None = None,
) -> SearchOutcome:
    """Search until the budget is spent or the strategy has nothing more to propose.

    A journal that was broken off is resumed: the strategy, fresh, is shown what is on record before
    anything is evaluated, and the journal ends as that of the unbroken run would.

    Args:
        spec: the operator.
        strategy: the method, closed at the end. Until it has seen results it may propose nothing.
        evaluator: evaluates; stays open.
        ledger: accounts for the budget; models may charge their tokens to it too.
        journal: an empty journal, or that of the same search, broken off.
        rules: what proposing a known candidate costs, how to measure, and what else identifies the run.
        in_flight: evaluations submitted at a time; changes the wall time, not the outcome.
        on_event: called with each step as it is observed, the baseline first.

    Raises:
        MisuseError: the journal is that of another search, or ``in_flight`` lets nothing be evaluated.
    """
    if in_flight < 1:
        raise MisuseError(f"expected at least 1 evaluation in flight, got {in_flight}")
    search = _Search(spec, strategy, evaluator, ledger, journal, rules or SearchRules(), on_event)
    outcome = _searched(search, in_flight)
    return outcome if outcome.stop_reason in RESUMABLE else _ended(outcome, journal)


def _ended(outcome: SearchOutcome, journal: Journal) -> SearchOutcome:
    """Write the end of a search; one whose end cannot be written is to be resumed."""
    try:
        with interrupts_held_back():
            journal.end(
                stop_reason=outcome.stop_reason.value,
                message=outcome.message,
                evaluations=outcome.evaluations,
                baseline_latency_us=outcome.baseline_latency_us,
                best_latency_us=outcome.best_result.latency_us if outcome.best_result else None,
                best_digest=outcome.best.digest,
            )
    except InfrastructureError as error:
        return replace(outcome, stop_reason=StopReason.INFRASTRUCTURE, message=str(error))
    return outcome


def _searched(search: _Search, in_flight: int) -> SearchOutcome:
    """Return what a search has found, however it ended."""
    try:
        stop_reason, message = search.run(in_flight)
    except InfrastructureError as error:
        stop_reason, message = StopReason.INFRASTRUCTURE, str(error)
    except KeyboardInterrupt:
        stop_reason, message = StopReason.INTERRUPTED, "interrupted before the budget was spent"
    except MethodFailedError as error:
        stop_reason, message = StopReason.METHOD_FAILED, str(error)
    finally:
        failure = search.close()
    if failure and stop_reason not in RESUMABLE:
        stop_reason, message = StopReason.METHOD_FAILED, failure
    return search.outcome(stop_reason, message)


def _without_baseline(result: EvalResult) -> tuple[StopReason, str]:
    """Return why a search ends whose baseline is not correct."""
    neutral = rule_of(result.status).reward is RewardRule.NEUTRAL
    infra = neutral and result.status is not Status.INVALID_REQUEST
    reason = StopReason.INFRASTRUCTURE if infra else StopReason.BASELINE_FAILED
    return reason, f"the baseline ended as {result.status.value}: {result.all_diagnostics[0]}"


@dataclass
class _Pending:
    """A proposal on its way: ``reservation`` is ``None`` for the baseline.

    ``original`` is an earlier proposal of the same candidate, whose result is taken over if it says
    anything about the candidate.
    """

    index: int
    proposal: Proposal
    request: EvalRequest
    reservation: Reservation | None
    original: _Pending | None = None
    evaluation: Evaluation | None = None
    attempts: int = 0
    result: EvalResult | None = None


def _cancel(unfinished: Iterable[_Pending]) -> None:
    """Cancel those evaluations that have not ended."""
    with contextlib.suppress(InfrastructureError):
        for pending in unfinished:
            if pending.evaluation is not None and not pending.evaluation.done:
                pending.evaluation.cancel()


class _Search:
    """The state of one run of the loop."""

    def __init__(
        self,
        spec: OpSpec,
        strategy: Strategy,
        evaluator: Evaluator,
        ledger: BudgetLedger,
        journal: Journal,
        rules: SearchRules,
        on_event: Callable[[Step], None] | None,
    ) -> None:
        self._spec, self._strategy, self._evaluator = spec, strategy, evaluator
        self._ledger, self._journal, self._rules, self._on_event = ledger, journal, rules, on_event
        self._best = spec.baseline
        self._best_result: EvalResult | None = None
        self._history: list[Step] = []
        self._queue: deque[_Pending] = deque()
        self._known: dict[str, _Pending] = {}
        self._proposed = self._neutral_in_a_row = self._duplicates_in_a_row = self._in_vain = 0
        self._exhausted: tuple[StopReason, str] | None = None
        self._broken = ""
        self._broken_by = StopReason.INFRASTRUCTURE

    def build(self, candidate: Candidate) -> tuple[Diagnostic, ...]:
        """Build a candidate, and say what the compilers object to (see ``Builder``)."""
        reservation = self._ledger.reserve(_ONE_BUILD)
        smallest = min(self._spec.cases, key=lambda case: case.traffic_bytes)
        request = request_for(self._spec, candidate, self._rules.protocol, (smallest.case_id,))
        pending = _Pending(0, Proposal(candidate, {}), request, None)
        built = False
        try:
            self._submit(pending)
            result = self._awaited(pending)
            built = rule_of(result.status).reward is not RewardRule.NEUTRAL
        finally:
            if built:
                self._ledger.charge(reservation, _ONE_BUILD)
            else:
                self._ledger.refund(reservation)
            _cancel([pending])
        if not built:
            raise InfrastructureError(f"nothing can be built: {result.all_diagnostics[0]}")
        return result.all_diagnostics if result.status is Status.BUILD_ERROR else ()

    def run(self, in_flight: int) -> tuple[StopReason, str]:
        """Evaluate the baseline, then all that the strategy proposes and the budget covers."""
        self._journal.header(self._spec, self._rules.record(), self._measured_by())
        if isinstance(self._strategy, BuildingStrategy):
            self._strategy.use_builder(self)
        self._enqueue(Proposal(self._spec.baseline, BASELINE_ORIGIN), None)
        baseline = self._observe_next().result
        if baseline.status is not Status.OK:
            return _without_baseline(baseline)
        self._fill(in_flight)
        while self._queue and not self._has_stopped:
            self._observe_next()
            self._fill(in_flight)
        if self._broken:
            return self._broken_by, self._broken
        if self._exhausted:
            return self._exhausted
        if self._ledger.can_reserve(self._unit):
            return StopReason.STRATEGY_FINISHED, ""
        too_small = f"the budget covers no evaluation, which may cost up to {self._unit}: raise it"
        return StopReason.BUDGET_SPENT, "" if self._proposed > 1 else too_small

    def _measured_by(self) -> dict[str, str]:
        """Return everything but the settings that figures of this run depend on."""
        device, protocol = self._evaluator.describe(), self._rules.protocol
        return {
            "chip": protocol.chip,
            "convention": protocol.convention.value,
            "harness": device.harness,
            "toolchain": device.toolchain_digest,
        }

    def close(self) -> str:
        """Cancel what was submitted and will not be observed, refund it, and close the strategy.

        Returns:
            What a method from outside the package failed with as it was closed; empty if it did not.
        """
        for pending in self._queue:
            if pending.reservation is not None:
                self._ledger.refund(pending.reservation)
        _cancel(self._queue)
        self._queue.clear()
        try:
            self._strategy.close()
        except MethodFailedError as error:
            return str(error)
        return ""

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
    def _has_stopped(self) -> bool:
        """Whether what is under way no longer counts, so that the outcome does not depend on how much is."""
        return self._exhausted is not None and self._exhausted[0] is StopReason.NO_GAIN

    @property
    def _unit(self) -> Cost:
        """The most that one evaluation can cost; device time matters only when it is limited."""
        if self._ledger.budget.device_seconds is None:
            return Cost(evaluations=1)
        bound_s = len(self._spec.cases) * self._rules.protocol.repeats * self._rules.protocol.run_timeout_s
        return Cost(evaluations=1, device_seconds=bound_s * DEVICE_SECONDS_SLACK)

    def _fill(self, in_flight: int) -> None:
        """Reserve, ask and submit until ``in_flight`` proposals are on their way or no more can be."""
        while not self._broken and not self._exhausted:
            unused = deque(self._reserve(in_flight - len(self._queue)))
            try:
                proposals = self._asked_for(len(unused)) if unused else []
                for proposal in proposals[: len(unused)]:
                    self._enqueue(proposal, unused.popleft())
            finally:
                for reservation in unused:
                    self._ledger.refund(reservation)
            if not proposals:
                return

    def _reserve(self, count: int) -> list[Reservation]:
        """Reserve up to ``count`` evaluations."""
        return [
            self._ledger.reserve(self._unit) for _ in range(count) if self._ledger.can_reserve(self._unit)
        ]

    def _asked_for(self, count: int) -> list[Proposal]:
        try:
            return self._strategy.propose(count)
        except BudgetExceededError as error:
            self._exhausted = StopReason.BUDGET_SPENT, f"what models may cost is spent: {error}"
        except InfrastructureError as error:
            self._broken = f"the strategy could not propose: {error}"
            if isinstance(error, ModelRefusedError):
                self._broken_by, self._broken = StopReason.MODEL_REFUSED, str(error)
        return []

    def _enqueue(self, proposal: Proposal, reservation: Reservation | None) -> None:
        request = request_for(self._spec, proposal.candidate, self._rules.protocol)
        pending = _Pending(self._proposed, proposal, request, reservation)
        self._proposed += 1
        self._queue.append(pending)
        if isinstance(proposal, UnusableProposal):
            diagnostic = Diagnostic(phase=Phase.REQUEST, message=proposal.problem)
            pending.result = failed_result(request, Status.BUILD_ERROR, diagnostic)
            return
        pending.original = self._known.get(proposal.candidate.digest)
        if pending.original is None:
            self._known[proposal.candidate.digest] = pending
            self._find_result(pending)

    def _find_result(self, pending: _Pending) -> None:
        """Take the result from the journal of the run that is resumed, or submit."""
        recorded = self._journal.recorded(pending.index)
        if recorded is None:
            self._submit(pending)
        elif recorded.request_digest != pending.request.digest:
            raise MisuseError(
                f"{self._journal.path}: the resumed search proposes another candidate than is on file as "
                f"proposal {pending.index}: resume with the settings and the version that began it"
            )
        else:
            pending.result = recorded

    def _submit(self, pending: _Pending) -> None:
        pending.attempts += 1
        pending.evaluation = self._evaluator.submit(pending.request)

    def _observe_next(self) -> Step:
        """Wait for the oldest proposal's result; charge, observe and journal it."""
        pending = self._queue[0]
        if pending.original is not None:
            self._take_over(pending, self._known[pending.proposal.candidate.digest])
        result = self._awaited(pending)
        self._queue.popleft()
        with interrupts_held_back():
            self._settle(pending, result)
            step = self._record(pending, result)
        self._strategy.observe(step.proposal, step.result)
        if self._on_event is not None:
            self._on_event(step)
        return step

    def _awaited(self, pending: _Pending) -> EvalResult:
        """Return the result of ``pending``, taking in those of others that arrive before it."""
        while True:
            raise_if_interrupted()  # before a result is used that a lost interrupt may have spoilt
            if pending.result is not None:
                return pending.result
            self._evaluator.poll(_POLL_TIMEOUT_S)
            for each in (*self._queue, pending):
                if each.result is None and each.evaluation is not None and each.evaluation.done:
                    self._arrived(each, each.evaluation.result())

    def _arrived(self, pending: _Pending, result: EvalResult) -> None:
        if result.request_digest != pending.request.digest:
            raise InfrastructureError(f"proposal {pending.index} was answered with the result of another one")
        if result.status is Status.INFRA_ERROR and pending.attempts < INFRA_ATTEMPTS:
            self._submit(pending)
        else:
            pending.result = result

    def _take_over(self, pending: _Pending, original: _Pending) -> None:
        """Give a duplicate the result of its original, or have it evaluated if that says nothing of it."""
        known = original.result
        if known is None or rule_of(known.status).reward is RewardRule.NEUTRAL:
            pending.original = None
            self._known[pending.proposal.candidate.digest] = pending
            self._find_result(pending)
        else:
            pending.original = original
            free = known.charge.model_copy(update={"device_seconds": 0.0})
            pending.result = known.model_copy(update={"cached": True, "charge": free})

    def _settle(self, pending: _Pending, result: EvalResult) -> None:
        duplicate = pending.original is not None
        self._duplicates_in_a_row = self._duplicates_in_a_row + 1 if duplicate else 0
        free = duplicate and self._rules.duplicates is Duplicates.FREE
        if free and self._duplicates_in_a_row >= FREE_DUPLICATES_LIMIT:
            self._exhausted = StopReason.STRATEGY_FINISHED, _ALL_KNOWN
        if pending.reservation is None:
            return
        reservation, pending.reservation = pending.reservation, None
        if not rule_of(result.status).charged or free:
            self._ledger.refund(reservation)
            return
        try:
            self._ledger.charge(reservation, Cost(1, result.charge.device_seconds))
        except BudgetExceededError as error:
            self._exhausted = StopReason.BUDGET_SPENT, f"an evaluation took longer than it may: {error}"

    def _record(self, pending: _Pending, result: EvalResult) -> Step:
        best_us = self._best_result.latency_us if self._best_result else None
        unwritten = is_unwritten(self._spec, self._best)
        improved = becomes_best(result.latency_us, best_us, unwritten=unwritten)
        if improved:
            self._best, self._best_result, best_us = pending.proposal.candidate, result, result.latency_us
        first_correct = unwritten and not is_unwritten(self._spec, self._best)
        spent = self._ledger.spent
        step = Step(pending.index, pending.proposal, result, improved, best_us, spent, first_correct)
        original = pending.original.index if pending.original else None
        self._journal.evaluated(step.index, self._spec.baseline, step.proposal, result, original)
        self._history.append(step)
        self._note_gain(step)
        if self._journal.recorded(step.index) is None:  # a resumed run tries again
            self._note_neutral(result)
        return step

    def _note_gain(self, step: Step) -> None:
        """Stop proposing when evaluations keep bringing nothing better."""
        if step.improved:
            self._in_vain = 0
        elif rule_of(step.result.status).charged:
            self._in_vain += 1
        if self._rules.stop_after is not None and self._in_vain >= self._rules.stop_after:
            said = f"the last {self._in_vain} evaluations brought nothing better"
            self._exhausted = self._exhausted or (StopReason.NO_GAIN, said)

    def _note_neutral(self, result: EvalResult) -> None:
        """Stop proposing when results keep saying nothing about their candidates."""
        neutral = rule_of(result.status).reward is RewardRule.NEUTRAL
        self._neutral_in_a_row = self._neutral_in_a_row + 1 if neutral else 0
        if self._neutral_in_a_row >= NEUTRAL_LIMIT:
            self._broken = f"{NEUTRAL_LIMIT} evaluations in a row failed: {result.all_diagnostics[0]}"
