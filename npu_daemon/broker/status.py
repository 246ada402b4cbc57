"""The status of a broker, for users and monitoring, and questions about it from other threads."""

from __future__ import annotations

import contextlib
import os
import queue
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent import futures

from ascend_gym.core.records import DaemonStatus, TenantStatus
from npu_daemon.broker.jobs import Account
from npu_daemon.broker.state import BrokerState

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


def status_of(
    state: BrokerState, address: str, up_seconds: float, connections: Mapping[str, int]
) -> DaemonStatus:
    """Return the status of a broker with so many open ``connections`` of each tenant."""
    book, devices = state.book, state.workforce.devices
    tenants = sorted({*book.queue.tenants(), *book.accounts.tenants, *connections})
    phases = Counter(worker.phase.value for worker in state.workforce.workers.values())
    return DaemonStatus(
        address=address,
        info=state.offer(),
        up_seconds=up_seconds,
        draining=state.draining,
        workers=dict(sorted(phases.items())),
        devices=devices.count,
        devices_held=len(devices.holders),
        device_held_seconds=devices.held_seconds,
        charged_device_seconds=book.accounts.device_seconds,
        queued=len(book.queue),
        running=len(state.workforce.leased()),
        tenants=tuple(_tenant(state, name, connections.get(name, 0)) for name in tenants),
        counts=dict(sorted({**state.counts, **book.counts}.items())),
    )


def _tenant(state: BrokerState, name: str, connections: int) -> TenantStatus:
    queue = state.book.queue
    account = state.book.accounts.tenants.get(name, Account())
    return TenantStatus(
        tenant=name,
        queued=queue.queued(name),
        running=queue.running(name),
        evaluations=account.evaluations,
        device_seconds=account.device_seconds,
        connections=connections,
    )
