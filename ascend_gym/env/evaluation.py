"""Evaluations from beginning to end."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import Diagnostic, EvalRequest, EvalResult, Phase, failed_result
from ascend_gym.core.status import Status

_POLL_S = 60.0


def evaluate(evaluator: Evaluator, request: EvalRequest) -> EvalResult:
    """Submit ``request`` and wait for its result; see ``evaluate_all``."""
    return evaluate_all(evaluator, [request])[0]


def evaluate_all(evaluator: Evaluator, requests: Sequence[EvalRequest]) -> list[EvalResult]:
    """Submit ``requests`` and wait for their results; what is under way is cancelled when that fails.

    The evaluator must have no other requests under way. It bounds the wait itself: a daemon that stays silent
    becomes ``infra_error`` results. So does a request that cannot be submitted, where others can.

    Raises:
        InfrastructureError: the evaluator cannot be reached.
    """
    under_way: dict[str, int] = {}  # positions by request id
    results: dict[int, EvalResult] = {}
    try:
        _submit(evaluator, requests, under_way, results)
        while under_way:
            for request_id, result in evaluator.poll(_POLL_S):
                if request_id in under_way:
                    results[under_way.pop(request_id)] = result
    except (KeyboardInterrupt, InfrastructureError):
        for request_id in under_way:
            with suppress(InfrastructureError):
                evaluator.cancel(request_id)
        raise
    return [results[number] for number in range(len(requests))]


def _submit(
    evaluator: Evaluator,
    requests: Sequence[EvalRequest],
    under_way: dict[str, int],
    results: dict[int, EvalResult],
) -> None:
    """Submit ``requests``; those that cannot be get a result at once, unless none can be."""
    for number, request in enumerate(requests):
        try:
            under_way[evaluator.submit(request)] = number
        except InfrastructureError as error:
            if len(results) == len(requests) - 1:
                raise
            diagnostic = Diagnostic(phase=Phase.SERVICE, message=str(error))
            results[number] = failed_result(request, Status.INFRA_ERROR, diagnostic)
