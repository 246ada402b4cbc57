"""Evaluations from beginning to end."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import EvalRequest, EvalResult

_POLL_S = 60.0


def evaluate(evaluator: Evaluator, request: EvalRequest) -> EvalResult:
    """Submit ``request`` and wait for its result; see ``evaluate_all``."""
    return evaluate_all(evaluator, [request])[0]


def evaluate_all(evaluator: Evaluator, requests: Sequence[EvalRequest]) -> list[EvalResult]:
    """Submit ``requests`` and wait for their results; what is under way is cancelled when that fails.

    The evaluator must have no other requests under way. It bounds the wait itself: a daemon that stays silent
    becomes ``infra_error`` results.

    Raises:
        InfrastructureError: the evaluator cannot be reached.
    """
    waiting: list[str] = []
    results: dict[str, EvalResult] = {}
    try:
        for request in requests:
            waiting.append(evaluator.submit(request))
        while len(results) < len(waiting):
            results.update(item for item in evaluator.poll(_POLL_S) if item[0] in waiting)
    except (KeyboardInterrupt, InfrastructureError):
        for request_id in set(waiting) - set(results):
            with suppress(InfrastructureError):
                evaluator.cancel(request_id)
        raise
    return [results[request_id] for request_id in waiting]
