"""Runs a candidate on the domain of its operator, apart from an evaluation."""

from __future__ import annotations

from contextlib import nullcontext

from ascend_gym.core.protocols import Backend, Failure
from ascend_gym.core.records import Candidate, MeasureProtocol, OpSpec
from ascend_gym.suite.domain import domain_case, smallest_case
from ascend_gym.suite.oracle import oracle_for
from ascend_gym.suite.requests import request_for
from npu_daemon.case_data import CaseDataCache
from npu_daemon.case_runner import CaseRunner


def domain_complaint(
    spec: OpSpec,
    candidate: Candidate,
    backend: Backend,
    case_data: CaseDataCache,
    protocol: MeasureProtocol,
) -> str | None:
    """Return what is wrong with a candidate on its operator's domain, or ``None``.

    Args:
        spec: operator.
        candidate: for an operator with sources, its baseline or any other.
        backend: builds and runs it.
        case_data: holds the data of the domain case.
        protocol: its seed is that of the values.
    """
    smallest = smallest_case(spec.cases)
    case = domain_case(spec, smallest)
    oracle = oracle_for(spec)
    request = request_for(spec, candidate, protocol, (smallest.case_id,))
    runner = CaseRunner(request, spec, backend, oracle, case_data, nullcontext)
    built = backend.build(spec, case, candidate, protocol)
    if isinstance(built, Failure):
        return "; ".join(str(each) for each in built.diagnostics)
    data = case_data.draw(oracle, case, protocol.input_seed)
    try:
        refused = runner.refusal(case, built, data, rerun=1)
    finally:
        case_data.discard(data)
    if refused is None:
        return None
    return f"{refused.status.value}: {'; '.join(str(each) for each in refused.diagnostics)}"
