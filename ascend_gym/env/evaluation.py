"""Blocking evaluation of one or several requests."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Evaluation, Evaluator
from ascend_gym.core.records import Diagnostic, EvalRequest, EvalResult, Phase, failed_result
from ascend_gym.core.status import Status


def evaluate(evaluator: Evaluator, request: EvalRequest) -> EvalResult:
    """Submit ``request`` and wait for its result; see ``evaluate_all``."""
    return evaluate_all(evaluator, [request])[0]


def evaluate_all(evaluator: Evaluator, requests: Sequence[EvalRequest]) -> list[EvalResult]:
    """Submit ``requests`` and wait for their results, in order; on an error, cancel those in flight.

    The evaluator bounds the wait: a silent daemon yields ``infra_error`` results. If only some requests
    cannot be submitted, they end as ``infra_error``, too.

    Raises:
        InfrastructureError: the evaluator cannot be reached.
    """
    evaluations: list[Evaluation] = []
    errors: list[InfrastructureError] = []
    try:
        for request in requests:
            try:
                evaluations.append(evaluator.submit(request))
            except InfrastructureError as error:
                errors.append(error)
                evaluations.append(_failed(evaluator, request, str(error)))
        if errors and len(errors) == len(requests):
            raise errors[-1]
        return [evaluation.result() for evaluation in evaluations]
    except (KeyboardInterrupt, InfrastructureError):
        for evaluation in evaluations:
            with suppress(InfrastructureError):
                if not evaluation.done:
                    evaluation.cancel()
        raise


def _failed(evaluator: Evaluator, request: EvalRequest, problem: str) -> Evaluation:
    """Return the finished evaluation of a request that could not be submitted."""
    evaluation = Evaluation(evaluator, request)
    diagnostic = Diagnostic(phase=Phase.SERVICE, message=problem)
    evaluation.finish(failed_result(request, Status.INFRA_ERROR, diagnostic))
    return evaluation
