"""Evaluations from beginning to end."""

from __future__ import annotations

from collections.abc import Sequence

from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import EvalRequest, EvalResult

_POLL_S = 60.0


def evaluate(evaluator: Evaluator, request: EvalRequest) -> EvalResult:
    """Submit ``request`` and wait for its result; see ``evaluate_all``."""
    return evaluate_all(evaluator, [request])[0]


def evaluate_all(evaluator: Evaluator, requests: Sequence[EvalRequest]) -> list[EvalResult]:
    """Submit ``requests`` and wait for their results, cancelling what is under way when that is interrupted.

    The evaluator must have no other requests under way. It bounds the wait itself: a daemon that stays silent
    becomes ``infra_error`` results.

    Raises:
        InfrastructureError: the evaluator cannot be reached.
    """
    waiting = [evaluator.submit(request) for request in requests]
    results: dict[str, EvalResult] = {}
    try:
        while len(results) < len(waiting):
            results.update(item for item in evaluator.poll(_POLL_S) if item[0] in waiting)
    except KeyboardInterrupt:
        for request_id in set(waiting) - set(results):
            evaluator.cancel(request_id)
        raise
    return [results[request_id] for request_id in waiting]
