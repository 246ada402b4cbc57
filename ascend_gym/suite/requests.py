"""Requests that evaluate a candidate of a loaded operator."""

from __future__ import annotations

from ascend_gym.core.records import Candidate, EvalRequest, MeasureProtocol, OpSpec
from ascend_gym.suite.loader import LOCAL_SUITE


def request_for(
    spec: OpSpec, candidate: Candidate, protocol: MeasureProtocol, case_ids: tuple[str, ...] = ()
) -> EvalRequest:
    """Return the request that evaluates ``candidate`` for ``spec``; no case ids means all cases."""
    outside_suites = spec.op_id.startswith(f"{LOCAL_SUITE}/")
    return EvalRequest(
        op_id=spec.op_id,
        op_folder=spec.folder if outside_suites else None,
        folder_digest=spec.folder_digest,
        candidate=candidate,
        case_ids=case_ids,
        protocol=protocol,
    )
