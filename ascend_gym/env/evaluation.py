"""One evaluation from beginning to end."""

from __future__ import annotations

from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import EvalRequest, EvalResult

_POLL_S = 60.0


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
