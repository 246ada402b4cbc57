"""Evaluations from beginning to end, and the evaluator that an environment has them done by."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

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


class Connection:
    """Where evaluations are done; opened by the first of them, unless it is the caller's.

    A copy opens a connection of its own when it first evaluates; an evaluator of the caller's is shared by
    deep copies, and pickled with the connection where it can be.
    """

    def __init__(
        self, daemon: str | Sequence[str] | None, chip: str, evaluator: Evaluator | None = None
    ) -> None:
        """Prepare to connect; nothing is opened yet.

        Args:
            daemon: address, or several; ``None`` means those that the environment names, else a private one.
            chip: the chip of a private daemon.
            evaluator: the caller's own, which the caller closes.
        """
        self._daemon, self._chip = daemon, chip
        self._evaluator = evaluator
        self._owned = evaluator is None

    def __deepcopy__(self, memo: dict[int, Any]) -> Connection:
        return Connection(self._daemon, self._chip, None if self._owned else self._evaluator)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_evaluator": None if self._owned else self._evaluator}

    def evaluate(self, requests: Sequence[EvalRequest]) -> list[EvalResult]:
        """Return the results of all requests, in their order.

        The evaluator bounds the wait: a daemon that stays silent becomes ``infra_error`` results. When the
        connection is lost, the next evaluation connects, or starts a daemon, afresh.
        """
        if not requests:
            return []
        try:
            return evaluate_all(self._opened(), requests)
        except InfrastructureError as error:
            self.close()
            diagnostic = Diagnostic(phase=Phase.SERVICE, message=str(error))
            return [failed_result(request, Status.INFRA_ERROR, diagnostic) for request in requests]

    def close(self) -> None:
        """Close the evaluator, and stop its private daemon, if it was opened here."""
        if self._owned and self._evaluator is not None:
            self._evaluator.close()
            self._evaluator = None

    def _opened(self) -> Evaluator:
        if self._evaluator is None:
            from ascend_gym.client import DaemonOptions, connect  # sockets are needed only from here on

            self._evaluator = connect(self._daemon, options=DaemonOptions(chip=self._chip))
        return self._evaluator
