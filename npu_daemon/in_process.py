"""An evaluator without a daemon, for tests and debugging."""

from __future__ import annotations

from pathlib import Path

from ascend_gym.core.config import cache_root
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Backend
from ascend_gym.core.records import DeviceInfo, EvalRequest, EvalResult
from npu_daemon.pipeline import cancelled
from npu_daemon.service import open_service


class InProcessEvaluator:
    """Implements ``Evaluator`` by evaluating in the calling thread, one request per ``poll``.

    Args:
        backend: builds, runs and prices.
        cache_dir: where inputs and results are kept; default the cache root of this user.
    """

    def __init__(self, backend: Backend, cache_dir: Path | None = None) -> None:
        self._service = open_service(backend, cache_dir or cache_root())
        self._waiting: dict[str, EvalRequest] = {}
        self._finished: list[tuple[str, EvalResult]] = []
        self._submitted = 0
        self._closed = False

    def submit(self, request: EvalRequest) -> str:
        """Queue a request and return its id."""
        self._check_open()
        self._submitted += 1
        request_id = str(self._submitted)
        self._waiting[request_id] = request
        return request_id

    def poll(self, timeout_s: float) -> list[tuple[str, EvalResult]]:
        """Return finished pairs; if there is none, evaluate the oldest request, however long it takes."""
        self._check_open()
        if not self._finished and self._waiting:
            request_id = next(iter(self._waiting))
            self._finished.append((request_id, self._service.answer(self._waiting.pop(request_id))))
        finished, self._finished = self._finished, []
        return finished

    def cancel(self, request_id: str) -> None:
        """Stop a request if it has not been evaluated."""
        self._check_open()
        request = self._waiting.pop(request_id, None)
        if request is not None:
            self._finished.append((request_id, cancelled(request, "cancelled by the client")))

    def describe(self) -> DeviceInfo:
        """Say what will measure."""
        self._check_open()
        return self._service.describe()

    def close(self) -> None:
        """Drop what is waiting. Further calls raise ``InfrastructureError``."""
        self._waiting.clear()
        self._service.close()
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise InfrastructureError("this evaluator is closed; make a new one")
