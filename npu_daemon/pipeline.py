"""The evaluation of one request: inputs, build, run, verdict and price of each selected case.

Everything a candidate does wrong comes back as a status; exceptions are for infrastructure only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.protocols import Backend, Built, Failure, Oracle, RunOutput, Verdict
from ascend_gym.core.records import (
    Accuracy,
    Case,
    CaseResult,
    Charge,
    Diagnostic,
    EvalRequest,
    EvalResult,
    MeasureProtocol,
    OpSpec,
    Phase,
    PhaseSeconds,
    failed_result,
)
from ascend_gym.core.status import Status, rule_of
from npu_daemon.case_data import CaseData, CaseDataCache
from npu_daemon.guards import changed_file

DeviceGate = Callable[[], AbstractContextManager[object]]

_TRUSTED_WORK_S = 300.0


@dataclass
class Stopwatch:
    """Wall seconds by phase, and seconds that the device was held."""

    build: float = 0.0
    run: float = 0.0
    verify: float = 0.0
    price: float = 0.0
    started_s: float = field(default_factory=time.perf_counter)

    def phases(self) -> PhaseSeconds:
        """Return the seconds so far as a record."""
        total = time.perf_counter() - self.started_s
        return PhaseSeconds(build=self.build, run=self.run, verify=self.verify, price=self.price, total=total)


def case_limit_s(protocol: MeasureProtocol) -> float:
    """Return how long one case may take at most: two builds, two runs and the trusted side's own work."""
    return 2 * protocol.build_timeout_s + 2 * protocol.run_timeout_s + _TRUSTED_WORK_S


def evaluate(
    request: EvalRequest,
    spec: OpSpec,
    backend: Backend,
    oracle: Oracle,
    case_data: CaseDataCache,
    on_case: Callable[[], None] = lambda: None,
    device: DeviceGate = nullcontext,
) -> EvalResult:
    """Evaluate the candidate of ``request`` on its cases, up to the first case that fails.

    Args:
        request: what to evaluate.
        spec: the operator as loaded on this host.
        backend: builds, runs and prices.
        oracle: knows inputs and judges outputs of ``spec``.
        case_data: keeps inputs and expected outputs.
        on_case: called before each case, as a sign of progress.
        device: entered for each run of the candidate, and only then: building holds no device.

    Returns:
        A result for every outcome: caller faults are ``invalid_request``, troubles of this host
        ``infra_error``, and whatever the candidate did wrong its own status.
    """
    try:
        cases = select_cases(request, spec)
        complaint = backend.supports(spec, request.protocol)
        if complaint is not None:
            return failed_result(request, Status.UNSUPPORTED, complaint, device=backend.describe())
        runner = _CaseRunner(request, spec, backend, oracle, case_data, device)
        return _evaluate_cases(request, cases, runner, on_case)
    except MisuseError as error:
        return invalid_request(request, str(error))
    except (InfrastructureError, OSError) as error:
        return infra_error(request, str(error))


def select_cases(request: EvalRequest, spec: OpSpec) -> tuple[Case, ...]:
    """Return the cases that ``request`` asks for.

    Raises:
        MisuseError: the request is about another operator folder than ``spec``, or names an unknown or
            repeated case.
    """
    if request.folder_digest != spec.folder_digest:
        raise MisuseError(
            f"{spec.op_id}: the request was made for folder version {request.folder_digest[:12]}, the daemon "
            f"has {spec.folder_digest[:12]} in {spec.folder}; bring both to the same version"
        )
    if len(set(request.case_ids)) != len(request.case_ids):
        raise MisuseError(f"case ids are repeated: {list(request.case_ids)}")
    try:
        return tuple(spec.case(case_id) for case_id in request.case_ids) or spec.cases
    except KeyError as error:
        raise MisuseError(str(error.args[0])) from error


def invalid_request(request: EvalRequest, message: str) -> EvalResult:
    """Return the result of a request that cannot be evaluated through a fault of its sender."""
    return failed_result(request, Status.INVALID_REQUEST, Diagnostic(phase=Phase.REQUEST, message=message))


def infra_error(request: EvalRequest, message: str) -> EvalResult:
    """Return the result of a request that this host could not serve."""
    return failed_result(request, Status.INFRA_ERROR, Diagnostic(phase=Phase.SERVICE, message=message))


def cancelled(request: EvalRequest, message: str) -> EvalResult:
    """Return the result of a request that its sender withdrew."""
    return failed_result(request, Status.CANCELLED, Diagnostic(phase=Phase.SERVICE, message=message))


def _evaluate_cases(
    request: EvalRequest, cases: Sequence[Case], runner: _CaseRunner, on_case: Callable[[], None]
) -> EvalResult:
    results: list[CaseResult] = []
    for case in cases:
        on_case()
        results.append(runner.evaluate_case(case))
        if results[-1].status is not Status.OK:
            break
    status = results[-1].status
    return EvalResult(
        request_digest=request.digest,
        candidate_digest=request.candidate.digest,
        status=status,
        cases=tuple(results),
        seconds=runner.stopwatch.phases(),
        device=runner.backend.describe(),
        charge=Charge(evaluations=1 if rule_of(status).charged else 0, device_seconds=runner.stopwatch.run),
    )


@dataclass
class _CaseRunner:
    """Takes the cases of one request through the backend."""

    request: EvalRequest
    spec: OpSpec
    backend: Backend
    oracle: Oracle
    case_data: CaseDataCache
    device: DeviceGate
    stopwatch: Stopwatch = field(default_factory=Stopwatch)

    @property
    def protocol(self) -> MeasureProtocol:
        """How to evaluate."""
        return self.request.protocol

    def evaluate_case(self, case: Case) -> CaseResult:
        """Build, run, judge and price one case."""
        with ThreadPoolExecutor(max_workers=1) as beside:
            generated = beside.submit(
                self.case_data.obtain, self.spec, self.oracle, case, self.protocol.input_seed
            )
            built = self.backend.build(self.spec, case, self.request.candidate, self.protocol)
            data = generated.result()
        self.stopwatch.build += built.seconds
        if isinstance(built, Failure):
            return _failed_case(case, built)
        return self._run(case, built, data)

    def _run(self, case: Case, built: Built, data: CaseData) -> CaseResult:
        with self.device():
            run = self.backend.run(built, case, data.input_files, self.protocol)
        self.stopwatch.run += run.seconds
        if isinstance(run, Failure):
            return self._tampering(case, data) or _failed_case(case, run)
        try:
            return self._judge(case, run, data)
        finally:
            self.backend.cleanup(run)

    def _judge(self, case: Case, run: RunOutput, data: CaseData) -> CaseResult:
        started_s = time.perf_counter()
        tampering = self._tampering(case, data)
        if tampering is not None:
            return tampering
        verdict = self.oracle.judge(case, run.outputs, data.expected)
        self.stopwatch.verify += time.perf_counter() - started_s
        return self._price(case, run, verdict) if verdict.correct else _incorrect_case(case, verdict)

    def _price(self, case: Case, run: RunOutput, verdict: Verdict) -> CaseResult:
        started_s = time.perf_counter()
        measured = self.backend.measure(run, case, self.protocol)
        self.stopwatch.price += time.perf_counter() - started_s
        if isinstance(measured, Failure):
            return _failed_case(case, measured, verdict)
        return measured.model_copy(update={"accuracy": _accuracy(verdict)})

    def _tampering(self, case: Case, data: CaseData) -> CaseResult | None:
        """Return the verdict on a run that changed a file it may only read; the files are dropped."""
        complaint = changed_file(data.files)
        if complaint is None:
            return None
        self.case_data.forget(self.spec, case, self.protocol.input_seed)
        return CaseResult(case_id=case.case_id, status=Status.GUARD_REJECTED, diagnostics=(complaint,))


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


def _incorrect_case(case: Case, verdict: Verdict) -> CaseResult:
    complaint = Diagnostic(phase=Phase.VERIFY, message=verdict.message)
    return CaseResult(
        case_id=case.case_id,
        status=Status.INCORRECT,
        diagnostics=(complaint,),
        accuracy=_accuracy(verdict),
    )
