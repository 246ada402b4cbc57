"""Evaluates the cases of one request: build, run, verdict, price."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ascend_gym.core.protocols import Backend, Built, Failure, Oracle, RunOutput, Verdict
from ascend_gym.core.records import (
    Accuracy,
    Case,
    CaseResult,
    Diagnostic,
    EvalRequest,
    MeasureProtocol,
    OpSpec,
    Phase,
    PhaseSeconds,
)
from ascend_gym.core.status import Status
from ascend_gym.suite.domain import CASE_SUFFIX
from npu_daemon.baseline_oracle import SAID
from npu_daemon.case_data import CaseData, CaseDataCache
from npu_daemon.own_values import always_drawn, own_seed
from npu_daemon.sandbox import CONFINING

DeviceGate = Callable[[], AbstractContextManager[object]]
T = TypeVar("T")


@dataclass
class Stopwatch:
    """Wall seconds by phase; ``run`` is charged to the candidate, second looks are not.

    Phases may overlap: a candidate runs on other values while its first run is judged and priced.
    """

    build: float = 0.0
    run: float = 0.0
    verify: float = 0.0
    price: float = 0.0
    started_s: float = field(default_factory=time.perf_counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note_verifying(self, seconds: float) -> None:
        """Add seconds of verification; safe for two threads."""
        with self._lock:
            self.verify += seconds

    def phases(self) -> PhaseSeconds:
        """Return the seconds so far as a record."""
        total = time.perf_counter() - self.started_s
        return PhaseSeconds(build=self.build, run=self.run, verify=self.verify, price=self.price, total=total)


class SharedDevice:
    """A device gate for the threads of one evaluation: the first takes the device, the last frees it.

    Args:
        device: takes the device while it is entered.
    """

    def __init__(self, device: DeviceGate) -> None:
        self._device, self._lock = device, threading.Lock()
        self._inside, self._taken = 0, ExitStack()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Hold the device, with the other threads that do."""
        with self._lock:
            if self._inside == 0:
                self._taken.enter_context(self._device())
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._taken.close()


@dataclass(frozen=True)
class PassedCase:
    """A case that a candidate passed, with what is needed to run it again.

    Attributes:
        case: that it passed.
        built: build of the candidate for it.
        launch: see ``own_seed``.
        data: inputs and expected outputs.
        has_own_values: whether these were drawn for the candidate, or else are published.
        result: of the run.
    """

    case: Case
    built: Built
    launch: str
    data: CaseData
    has_own_values: bool
    result: CaseResult


@dataclass
class CaseRunner:
    """Evaluates the cases of one request with a backend.

    Attributes:
        passed: cases that the candidate passed, in order.
    """

    request: EvalRequest
    spec: OpSpec
    backend: Backend
    oracle: Oracle
    case_data: CaseDataCache
    device: DeviceGate
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    passed: list[PassedCase] = field(default_factory=list)
    _drawn: list[CaseData] = field(default_factory=list)

    @property
    def protocol(self) -> MeasureProtocol:
        """Measurement protocol of the request."""
        return self.request.protocol

    @property
    def _confined(self) -> bool:
        """Whether the candidate cannot reach the files of others."""
        return self.backend.describe().sandbox in CONFINING

    @property
    def may_overlap(self) -> bool:
        """Whether the candidate may run while an earlier run of it is judged and priced.

        Only where it cannot touch what the trusted side reads meanwhile, and where pricing does not run it.
        """
        prices_without_it = not self.backend.measures_on_device and not self.protocol.stalls
        return prices_without_it and self._confined

    def evaluate_case(
        self,
        case: Case,
        on_launch: Callable[[Case, str], None] = lambda *_: None,
        on_build: Callable[[Case, Built], None] = lambda *_: None,
        on_run: Callable[[Case, Built], None] = lambda *_: None,
    ) -> CaseResult:
        """Build, run, judge and price one case.

        Args:
            case: case of the request.
            on_launch: called with the case and what its tiling program hands on; see ``own_seed``.
            on_build: called with the case and its build before its run.
            on_run: likewise after a successful run, before its outputs are judged.
        """
        own = always_drawn(self.spec, case)
        launches: list[str] = []
        values: list[Future[CaseData]] = []
        with ThreadPoolExecutor(max_workers=1) as beside:
            published = beside.submit(self.data, case)

            def note_launch(launch: str) -> None:
                launches.append(launch)
                if own:
                    values.append(beside.submit(self.own_data, case, launch))
                on_launch(case, launch)

            built = self.build(case, note_launch)
            if isinstance(built, Built) and not launches:
                note_launch("")
            lax = published.result()
        self.stopwatch.build += built.seconds
        data = values[0].result() if values else lax
        if isinstance(built, Failure):
            return _failed_case(case, built)
        data = replace(data, insensitive=lax.insensitive)
        on_build(case, built)
        result = self.launch(case, built, data, on_run=lambda: on_run(case, built))
        if result.status is Status.OK:
            self.passed.append(PassedCase(case, built, launches[0], data, own, result))
        return result

    def build(self, case: Case, on_launch: Callable[[str], None]) -> Built | Failure:
        """Build the candidate for a case; see ``Backend.build``."""
        return self.backend.build(self.spec, case, self.request.candidate, self.protocol, on_launch=on_launch)

    def data(self, case: Case) -> CaseData:
        """Return the published inputs and expected outputs of a case."""
        return self.case_data.obtain(self.spec, self.oracle, case, self.protocol.input_seed)

    def own_data(self, case: Case, launch: str) -> CaseData:
        """Return data of a case with values of the candidate's own, which are removed by ``close``.

        Args:
            case: of the request, or drawn from the domain.
            launch: see ``own_seed``.
        """
        seed, shared = own_seed(self.request, case, launch), self.spec.shared_inputs
        if case.case_id.endswith(CASE_SUFFIX):
            shared = ()
        data = self.case_data.draw(self.oracle, case, seed, shared, self.protocol.input_seed)
        self._drawn.append(data)
        return data

    def close(self) -> None:
        """Remove what was drawn for the candidate."""
        for data in self._drawn:
            self.case_data.discard(data)

    def launch(
        self,
        case: Case,
        built: Built,
        data: CaseData,
        rerun: int = 0,
        on_run: Callable[[], None] = lambda: None,
        *,
        charged: bool = True,
    ) -> CaseResult:
        """Run a case in a fresh process, judge its outputs and price it.

        Args:
            case: case.
            built: build of the candidate for the case.
            data: inputs and expected outputs.
            rerun: see ``Backend.run``.
            on_run: called after a successful run, before its outputs are judged.
            charged: whether the seconds of run 0 are charged to the candidate; those of others never are.
        """
        result = self._run(case, built, data, rerun, self._price, on_run, charged=charged)
        if result.status is not Status.OK or not data.insensitive:
            return result
        return result.model_copy(update={"diagnostics": (*result.diagnostics, _insensitive(data))})

    def refusal(self, case: Case, built: Built, data: CaseData, rerun: int) -> CaseResult | None:
        """Run and judge a case like ``launch``; return the failure, or ``None``.

        Args:
            case: case.
            built: build of the candidate for the case.
            data: inputs and expected outputs.
            rerun: see ``Backend.run``.
        """
        return self._run(case, built, data, rerun, lambda *_: None)

    def _run(
        self,
        case: Case,
        built: Built,
        data: CaseData,
        rerun: int,
        finish: Callable[[Case, RunOutput, Verdict], T],
        on_run: Callable[[], None] = lambda: None,
        *,
        charged: bool = True,
    ) -> CaseResult | T:
        with self.device():
            run = self.backend.run(built, case, data.input_files, self.protocol, rerun)
        if rerun == 0 and charged:
            self.stopwatch.run += run.seconds
        else:
            self.stopwatch.note_verifying(run.seconds)
        if isinstance(run, Failure):
            return self._tampering(case, data) or _failed_case(case, run)
        try:
            on_run()
            verdict = self._judge(case, run, data)
            given_up, run = [run], replace(run, outputs=())
            _give_up(given_up)
            return finish(case, run, verdict) if isinstance(verdict, Verdict) else verdict
        finally:
            self.backend.cleanup(run)

    def _judge(self, case: Case, run: RunOutput, data: CaseData) -> CaseResult | Verdict:
        """Return the verdict on outputs, or the final result of the case if they are wrong."""
        started_s = time.perf_counter()
        tampering = self._tampering(case, data)
        if tampering is not None:
            return tampering
        accepted = self.case_data.accepted
        verdict = accepted.verdict(data.folder, run.outputs)
        if verdict is None:
            verdict = self.oracle.judge(case, run.outputs, data.expected)
            accepted.note(data.folder, run.outputs, verdict)
        self.stopwatch.note_verifying(time.perf_counter() - started_s)
        if verdict.correct:
            return verdict
        return _incorrect_case(case, verdict, (*run.explain(run.outputs), *run.diagnostics))

    def _price(self, case: Case, run: RunOutput, verdict: Verdict) -> CaseResult:
        started_s = time.perf_counter()
        with self.device() if self.backend.measures_on_device else nullcontext():
            measured = self.backend.measure(run, case, self.protocol)
        self.stopwatch.price += time.perf_counter() - started_s
        if isinstance(measured, Failure):
            return _failed_case(case, measured, verdict)
        told = {
            "accuracy": _accuracy(verdict),
            "diagnostics": (*self._without_reference(), *measured.diagnostics, *run.diagnostics),
        }
        return measured.model_copy(update=told)

    def _without_reference(self) -> tuple[Diagnostic, ...]:
        return (SAID,) if self.spec.reference == "baseline" else ()

    def _tampering(self, case: Case, data: CaseData) -> CaseResult | None:
        """Return the result of a run that changed a read-only file, whose data are then dropped."""
        complaint = self.case_data.unchanged.changed(data.files, confined=self._confined)
        if complaint is None:
            return None
        self.case_data.forget(data)
        return CaseResult(case_id=case.case_id, status=Status.GUARD_REJECTED, diagnostics=(complaint,))


def _give_up(held: list[RunOutput]) -> None:
    """Drop the last references to runs in passing: freeing large outputs takes as long as judging them."""
    threading.Thread(target=held.clear).start()


def _insensitive(data: CaseData) -> Diagnostic:
    message = f"the verdict of this case is too lax: {'; '.join(data.insensitive)}"
    return Diagnostic(phase=Phase.VERIFY, message=message)


def _accuracy(verdict: Verdict) -> Accuracy:
    return Accuracy(
        max_abs_error=verdict.max_abs_error,
        max_rel_error=verdict.max_rel_error,
        bad_share=verdict.bad_share,
        upstream_rule_passes=verdict.upstream_rule_passes,
    )


def _failed_case(case: Case, failure: Failure, verdict: Verdict | None = None) -> CaseResult:
    return CaseResult(
        case_id=case.case_id,
        status=failure.status,
        diagnostics=failure.diagnostics,
        accuracy=_accuracy(verdict) if verdict else None,
    )


def _incorrect_case(case: Case, verdict: Verdict, further: tuple[Diagnostic, ...]) -> CaseResult:
    complaint = Diagnostic(phase=Phase.VERIFY, message=verdict.message)
    return CaseResult(
        case_id=case.case_id,
        status=Status.INCORRECT,
        diagnostics=(complaint, *further),
        accuracy=_accuracy(verdict),
    )
