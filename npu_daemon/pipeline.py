"""Evaluation of one request: inputs, build, run, verdict and price of each selected case.

Faults of the candidate are returned as a status; exceptions are for infrastructure only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.protocols import Backend, Oracle
from ascend_gym.core.records import (
    Case,
    CaseResult,
    Charge,
    DeviceInfo,
    Diagnostic,
    EvalRequest,
    EvalResult,
    MeasureProtocol,
    OpSpec,
    Phase,
    failed_result,
)
from ascend_gym.core.status import Status, rule_of
from npu_daemon.baseline_oracle import BaselineOracle
from npu_daemon.case_data import CaseDataCache
from npu_daemon.case_runner import CaseRunner, DeviceGate, SharedDevice
from npu_daemon.eager import eager_result
from npu_daemon.sandbox import wall_limit_s
from npu_daemon.second_look import DomainRun, second_look

_TRUSTED_WORK_S = 300.0
OWN_FAULT = (
    "these are the operator's own sources, unchanged: the fault is theirs, or upstream's where they are "
    "imported, and no rewrite has made it"
)


def case_limit_s(protocol: MeasureProtocol) -> float:
    """Return the maximum time between two signs of progress: two builds, two runs and the trusted work."""
    each_s = wall_limit_s(protocol.build_timeout_s) + wall_limit_s(protocol.run_timeout_s)
    return 2 * each_s + _TRUSTED_WORK_S


def evaluate(
    request: EvalRequest,
    spec: OpSpec,
    backend: Backend,
    oracle: Oracle,
    case_data: CaseDataCache,
    device: DeviceGate = nullcontext,
    best_us: float | None = None,
    on_case: Callable[[], None] = lambda: None,
) -> EvalResult:
    """Evaluate the candidate of ``request`` on its cases, up to the first case that fails.

    Args:
        request: request.
        spec: operator as loaded on this host.
        backend: builds, runs and prices.
        oracle: generates inputs and judges outputs of ``spec``.
        case_data: caches inputs and expected outputs.
        device: context manager, entered only for each run of the candidate (including timing on a device), so
            that building holds no device.
        best_us: latency in microseconds of the fastest earlier candidate, if any. A faster one is a champion
            and gets a closer second look. Without one, every candidate except the operator's own sources is.
        on_case: called before each run, as a sign of progress.

    Returns:
        A result for every outcome: faults of the caller are ``invalid_request``, problems of this host
        ``infra_error``, and faults of the candidate have their own status.
    """
    try:
        cases = select_cases(request, spec)
        complaint = backend.supports(spec, request.protocol)
        if complaint is not None:
            return failed_result(request, Status.UNSUPPORTED, complaint, device=backend.describe())
        if not spec.has_sources and request.candidate.digest == spec.baseline.digest:
            return eager_result(request, cases, backend)
        if spec.reference == "baseline":
            oracle = BaselineOracle(oracle, spec, backend, request.protocol)
        if best_us is None:
            best_us = 0.0 if request.candidate.digest == spec.baseline.digest else math.inf
        runner = CaseRunner(request, spec, backend, oracle, case_data, SharedDevice(device))
        try:
            return _evaluate_cases(request, cases, runner, best_us, on_case)
        finally:
            runner.close()
    except MisuseError as error:
        return invalid_request(request, str(error))
    except (InfrastructureError, OSError) as error:
        return infra_error(request, str(error))


def select_cases(request: EvalRequest, spec: OpSpec) -> tuple[Case, ...]:
    """Return the cases that ``request`` selects.

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
    """Return the result of a request that cannot be evaluated because of an error of its sender."""
    return failed_result(request, Status.INVALID_REQUEST, Diagnostic(phase=Phase.REQUEST, message=message))


def infra_error(request: EvalRequest, message: str) -> EvalResult:
    """Return the result of a request that failed because of this host."""
    return failed_result(request, Status.INFRA_ERROR, Diagnostic(phase=Phase.SERVICE, message=message))


def cancelled(request: EvalRequest, message: str) -> EvalResult:
    """Return the result of a request that its sender withdrew."""
    return failed_result(request, Status.CANCELLED, Diagnostic(phase=Phase.SERVICE, message=message))


def _evaluate_cases(
    request: EvalRequest,
    cases: Sequence[Case],
    runner: CaseRunner,
    best_us: float,
    on_case: Callable[[], None],
) -> EvalResult:
    results: list[CaseResult] = []
    with DomainRun(runner, cases, early=math.isfinite(best_us)) as domain:
        for case in cases:
            on_case()
            results.append(runner.evaluate_case(case, domain.note_launch, domain.note_build, domain.note_run))
            if results[-1].status is not Status.OK:
                break
        else:
            latency_us = _result(request, results, runner).latency_us
            champion = latency_us is not None and latency_us < best_us
            results = second_look(runner, domain, champion=champion, on_case=on_case)
    if results[-1].status is not Status.OK and request.candidate.digest == runner.spec.baseline.digest:
        results[-1] = _of_own_sources(results[-1])
    return _result(request, results, runner)


def _of_own_sources(result: CaseResult) -> CaseResult:
    """Return a failed result that says whose fault it is."""
    told = Diagnostic(phase=result.diagnostics[-1].phase, message=OWN_FAULT)
    return result.model_copy(update={"diagnostics": (*result.diagnostics, told)})


def _result(request: EvalRequest, results: Sequence[CaseResult], runner: CaseRunner) -> EvalResult:
    status = results[-1].status
    return EvalResult(
        request_digest=request.digest,
        candidate_digest=request.candidate.digest,
        status=status,
        cases=tuple(results),
        convention=request.protocol.convention,
        seconds=runner.stopwatch.phases(),
        device=_device(runner.backend, request.protocol.chip),
        charge=Charge(evaluations=1 if rule_of(status).charged else 0, device_seconds=runner.stopwatch.run),
    )


def _device(backend: Backend, chip: str) -> DeviceInfo:
    """Return the device that measured: the backend's, with the requested chip and the facts about it."""
    return backend.describe().model_copy(update={"chip": chip, "target": backend.target(chip)})
