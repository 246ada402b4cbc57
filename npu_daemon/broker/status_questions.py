"""Status requests from other threads."""

from __future__ import annotations

import contextlib
import os
import queue
from collections.abc import Callable
from concurrent import futures

from ascend_gym.core.records import DaemonStatus

_ANSWER_TIMEOUT_S = 10.0


class StatusQuestions:
    """Accepts status requests from any thread; the broker answers them in its own thread.

    An answer is at least as recent as anything the broker has sent before the request.

    Attributes:
        asked_fd: becomes readable when there are requests to answer.
    """

    def __init__(self) -> None:
        self._open: queue.SimpleQueue[futures.Future[DaemonStatus]] = queue.SimpleQueue()
        self.asked_fd, self._wake_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def ask(self, timeout_s: float = _ANSWER_TIMEOUT_S) -> DaemonStatus | None:
        """Return the status; ``None`` without an answer: the broker is starting, stopping or stuck."""
        question: futures.Future[DaemonStatus] = futures.Future()
        self._open.put(question)
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes the broker too
            os.write(self._wake_fd, b"?")
        try:
            return question.result(timeout_s)
        except futures.TimeoutError:
            question.cancel()
            return None

    def answer(self, status: Callable[[], DaemonStatus]) -> None:
        """Answer all pending requests."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.asked_fd, 4096):
                continue
        with contextlib.suppress(queue.Empty):
            while True:
                question = self._open.get_nowait()
                if question.set_running_or_notify_cancel():
                    question.set_result(status())
