"""One evaluation from beginning to end: the request for an operator, and waiting for its answer."""

from __future__ import annotations

from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import Candidate, EvalRequest, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.suite.loader import LOCAL_SUITE

_POLL_S = 60.0


def request_for(
    spec: OpSpec, candidate: Candidate, protocol: MeasureProtocol, case_ids: tuple[str, ...] = ()
) -> EvalRequest:
    """Return the request that evaluates ``candidate`` for ``spec``; no case ids means all cases."""
    suite = spec.op_id.partition("/")[0]
    return EvalRequest(
        op_id=spec.op_id,
        op_folder=spec.folder if suite == LOCAL_SUITE else None,
        folder_digest=spec.folder_digest,
        candidate=candidate,
        case_ids=case_ids,
        protocol=protocol,
    )


def evaluate(evaluator: Evaluator, request: EvalRequest) -> EvalResult:
    """Submit ``request`` and wait for its result, cancelling it when the wait is interrupted.

    The evaluator must have no other request under way. It bounds the wait itself: a daemon that stays
    silent becomes an ``infra_error`` result.
    """
    request_id = evaluator.submit(request)
    try:
        while True:
            for finished_id, result in evaluator.poll(_POLL_S):
                if finished_id == request_id:
                    return result
    except KeyboardInterrupt:
        evaluator.cancel(request_id)
        raise
