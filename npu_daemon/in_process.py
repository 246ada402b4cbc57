"""An evaluator without a daemon, for tests and debugging."""

from __future__ import annotations

from pathlib import Path

from ascend_gym.core.config import cache_root
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Backend, Evaluation
from ascend_gym.core.records import DeviceInfo, EvalRequest, EvalResult
from npu_daemon.pipeline import cancelled
from npu_daemon.service import open_service


class InProcessEvaluator:
    """An ``Evaluator`` that evaluates in the calling thread, one request per ``poll``.

    Args:
        backend: builds, runs and prices.
        cache_dir: folder for inputs and results; by default the user's cache root.
    """

    def __init__(self, backend: Backend, cache_dir: Path | None = None) -> None:
        self._service = open_service(backend, cache_dir or cache_root())
        self._waiting: list[Evaluation] = []
        self._finished: list[tuple[Evaluation, EvalResult]] = []
        self._submitted = 0
        self._closed = False

    def submit(self, request: EvalRequest) -> Evaluation:
        """Queue a request."""
        self._check_open()
        self._submitted += 1
        evaluation = Evaluation(self, request, str(self._submitted))
        self._waiting.append(evaluation)
        return evaluation

    def poll(self, timeout_s: float) -> list[tuple[Evaluation, EvalResult]]:
        """Return finished evaluations; without any, evaluate the oldest request, however long it takes."""
        self._check_open()
        if not self._finished and self._waiting:
            evaluation = self._waiting[0]
            result = self._service.answer(evaluation.request)
            self._waiting.pop(0)
            self._finish(evaluation, result)
        finished, self._finished = self._finished, []
        return finished

    def cancel(self, evaluation: Evaluation) -> None:
        """Cancel a request unless it has been evaluated."""
        self._check_open()
        if evaluation in self._waiting:
            self._waiting.remove(evaluation)
            self._finish(evaluation, cancelled(evaluation.request, "cancelled by the client"))

    def describe(self) -> DeviceInfo:
        """Return the device that measures."""
        self._check_open()
        return self._service.describe()

    def close(self) -> None:
        """Drop waiting requests. Further calls raise ``InfrastructureError``."""
        self._waiting.clear()
        self._service.close()
        self._closed = True

    def _finish(self, evaluation: Evaluation, result: EvalResult) -> None:
        evaluation.finish(result)
        self._finished.append((evaluation, result))

    def _check_open(self) -> None:
        if self._closed:
            raise InfrastructureError("this evaluator is closed; make a new one")
