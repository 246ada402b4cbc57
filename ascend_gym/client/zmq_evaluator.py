"""An evaluator on one daemon, over a ZeroMQ DEALER socket."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import zmq

from ascend_gym.client.daemon_link import DaemonLink
from ascend_gym.client.local_daemon import LocalDaemon
from ascend_gym.client.waiting import wait_until
from ascend_gym.core.codec import Kind, WireMessage
from ascend_gym.core.errors import DaemonUnreachableError, InfrastructureError, MisuseError
from ascend_gym.core.records import (
    DaemonInfo,
    DeviceInfo,
    Diagnostic,
    EvalRequest,
    EvalResult,
    Phase,
    failed_result,
)
from ascend_gym.core.status import Status

CONNECT_TIMEOUT_S = 10.0
READY_TIMEOUT_S = 300.0
MAX_IN_FLIGHT = 500
BUSY_PAUSE_S = 0.5
REMIND_S = 20.0
SILENCE_S = 60.0
FIRST_ANSWER_S = 10.0  # a daemon that is getting ready says twice a second that it is there


class ZmqEvaluator:
    """Implements ``Evaluator`` on the daemon at ``address``, for one thread.

    A lost connection is made again by itself, and what has not been answered is then submitted again under
    the same ids, which the daemon recognises. At most ``max_in_flight`` requests are with the daemon at a
    time, and fewer when it says that it is busy; the others wait here.

    Args:
        address: ``tcp://HOST:PORT`` or ``ipc://PATH`` of a daemon.
        connect_timeout_s: how long the daemon may be unreachable before calls raise.
        ready_timeout_s: how long a daemon that is reachable may take to get ready to evaluate.
        private_daemon: the daemon at ``address`` if it is one of this process; its end is noticed at once.
        on_close: called once when this evaluator is closed or collected.
        max_in_flight: requests that the daemon may have at a time.

    Attributes:
        dropped_messages: answers to questions that are not open, and therefore ignored.

    Raises:
        MisuseError: ``address`` is not one.
    """

    def __init__(
        self,
        address: str,
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        ready_timeout_s: float = READY_TIMEOUT_S,
        private_daemon: LocalDaemon | None = None,
        on_close: Callable[[], None] | None = None,
        max_in_flight: int = MAX_IN_FLIGHT,
    ) -> None:
        self.address = address
        self.dropped_messages = 0
        self._ready_timeout_s = ready_timeout_s
        self._max_in_flight = max_in_flight
        self._window = float(max_in_flight)
        self._requests: dict[str, EvalRequest] = {}
        self._waiting: deque[str] = deque()
        self._sent: dict[str, None] = {}
        self._cancelled: set[str] = set()
        self._withdrawn: list[str] = []
        self._finished: list[tuple[str, EvalResult]] = []
        self._info: DaemonInfo | None = None
        self._asked = False
        self._submitted = 0
        self._connections = 0
        self._busy_until_s = 0.0
        self._reminded_s = 0.0
        self._link = DaemonLink(address, connect_timeout_s, private_daemon, on_close)

    @property
    def sources(self) -> list[zmq.Socket[bytes] | int]:
        """What becomes readable when ``poll`` may have something to do."""
        return self._link.sources

    @property
    def is_connected(self) -> bool:
        """Whether the daemon is reachable, as far as is known."""
        return self._link.is_connected

    @property
    def info(self) -> DaemonInfo | None:
        """What the daemon said that it can do, once it has."""
        return self._info

    def submit(self, request: EvalRequest) -> str:
        """Queue a request and return its id; one that is too large to be sent ends as ``invalid_request``.

        Raises:
            InfrastructureError: this evaluator is closed, or too much is waiting to be sent.
        """
        self._check_open()
        self._submitted += 1
        request_id = f"{self._submitted}"
        self._requests[request_id] = request
        self._waiting.append(request_id)
        try:
            self._send_waiting()
        except InfrastructureError:
            self._forget(request_id)
            raise
        return request_id

    def poll(self, timeout_s: float) -> list[tuple[str, EvalResult]]:
        """Return finished pairs, waiting up to ``timeout_s`` for the first if something is pending.

        Raises:
            DaemonUnreachableError: something is pending and the daemon has been unreachable for too long.
        """
        self._check_open()
        self._receive()
        wait_until(lambda: bool(self._finished) or not self._requests, self._turn, timeout_s)
        finished, self._finished = self._finished, []
        return finished

    def cancel(self, request_id: str) -> None:
        """Stop a request if it has not finished; ``poll`` then returns it with status ``cancelled``."""
        self._check_open()
        request = self._requests.get(request_id)
        if request is None:
            return
        if request_id in self._sent:
            self._cancelled.add(request_id)
            self._link.send(WireMessage(Kind.CANCEL, request_id))
        else:
            self._finish(request_id, _cancelled(request))

    def describe(self) -> DeviceInfo:
        """Ask the daemon what measures; waits until it is ready.

        Raises:
            DaemonUnreachableError: the daemon cannot be reached, or does not get ready.
        """
        self.ask_info()
        wait_until(lambda: self._info is not None, self._turn, self._ready_timeout_s)
        if self._info is None:
            raise DaemonUnreachableError(
                f"the daemon at {self.address} answers, but was not ready to evaluate within "
                f"{self._ready_timeout_s:g} s; see its messages"
            )
        return self._info.device

    def ask_info(self) -> None:
        """Ask the daemon what it can do; the answer becomes ``info`` when ``poll`` has received it."""
        self._check_open()
        self._info = None
        self._asked = True
        self._link.expect_answers()
        self._link.send(WireMessage(Kind.DESCRIBE))

    def withdraw(self) -> None:
        """Give up everything that is pending, here and, as soon as it can be reached, at the daemon."""
        self._withdrawn += self._sent
        for request_id in list(self._requests):
            self._forget(request_id)

    def close(self) -> None:
        """Withdraw what is pending and disconnect. Further calls raise ``InfrastructureError``."""
        if self._link.is_open and self._link.is_connected:
            for request_id in self._sent:
                self._link.send(WireMessage(Kind.CANCEL, request_id))
        self._link.close()

    def _check_open(self) -> None:
        if not self._link.is_open:
            raise InfrastructureError("this evaluator is closed; make a new one")

    def check_reachable(self) -> None:
        """Raise if the daemon cannot be reached, or has been silent, for too long.

        Raises:
            DaemonUnreachableError: as it says.
        """
        self._link.check_reachable()
        silent_s = time.monotonic() - self._link.heard_s
        patience_s = max(FIRST_ANSWER_S, self._link.connect_timeout_s)
        if self._asked and self._info is None and self._link.is_connected and silent_s > patience_s:
            raise self._link.no_answer(patience_s)
        if self._sent and silent_s > SILENCE_S:
            raise DaemonUnreachableError(
                f"the daemon at {self.address} has said nothing for {silent_s:.0f} s, although it has "
                "requests of ours; see its messages"
            )

    def _turn(self, remaining_s: float) -> None:
        """Wait for something to happen, no longer than there may be something to send, and take it in."""
        self.check_reachable()
        pause_s = BUSY_PAUSE_S if self._waiting else min(REMIND_S, SILENCE_S, FIRST_ANSWER_S)
        self._link.wait(min(remaining_s, pause_s))
        self._receive()

    def _receive(self) -> None:
        """Take in what has arrived and send what may be sent."""
        messages = self._link.received()
        if self._link.connections > self._connections:
            self._resume(again=self._connections > 0)
        for message in messages:
            self._take(message)
        self._remind()
        self._send_waiting()

    def _resume(self, *, again: bool) -> None:
        """Say on a new connection what the daemon may not have got on the last one."""
        self._connections = self._link.connections
        if not again:
            return
        for request_id in self._withdrawn:
            self._link.send(WireMessage(Kind.CANCEL, request_id))
        self._withdrawn.clear()
        if self._asked and self._info is None:
            self._link.send(WireMessage(Kind.DESCRIBE))
        self._submit_again()

    def _remind(self) -> None:
        """Ask a daemon once more that is connected but silent: an answer may have been lost on its way."""
        now_s = time.monotonic()
        silent = self._link.is_connected and now_s - self._link.heard_s > REMIND_S
        if self._sent and silent and self._reminded_s < self._link.heard_s:
            self._reminded_s = now_s
            self._submit_again()

    def _submit_again(self) -> None:
        for request_id in self._sent:
            self._link.send(WireMessage(Kind.SUBMIT, request_id, payload=self._requests[request_id]))
            if request_id in self._cancelled:
                self._link.send(WireMessage(Kind.CANCEL, request_id))

    def _send_waiting(self) -> None:
        while self._waiting and len(self._sent) < int(self._window):
            if time.monotonic() < self._busy_until_s:
                return
            request_id = self._waiting[0]
            request = self._requests[request_id]
            if not self._sent:
                self._link.expect_answers()
            try:
                self._link.send(WireMessage(Kind.SUBMIT, request_id, payload=request))
            except MisuseError as error:
                complaint = Diagnostic(phase=Phase.REQUEST, message=str(error))
                self._finish(request_id, failed_result(request, Status.INVALID_REQUEST, complaint))
                continue
            self._waiting.popleft()
            self._sent[request_id] = None

    def _take(self, message: WireMessage) -> None:
        if isinstance(message.payload, DaemonInfo):
            self._info = message.payload
        elif isinstance(message.payload, EvalResult):
            self._finish(message.request_id, message.payload)
        elif message.kind is Kind.BUSY:
            self._postpone(message.request_id)
        elif isinstance(message.payload, Diagnostic):
            self._take_refusal(message.request_id, message.payload)

    def _postpone(self, request_id: str) -> None:
        """Keep a request that the daemon did not accept, and send nothing more for a while.

        From here on the daemon gets as many requests at a time as it has accepted, then slowly more.
        """
        if request_id not in self._sent:
            return
        if request_id in self._cancelled:
            self._finish(request_id, _cancelled(self._requests[request_id]))
            return
        del self._sent[request_id]
        self._waiting.append(request_id)
        self._window = float(max(1, len(self._sent)))
        self._busy_until_s = time.monotonic() + BUSY_PAUSE_S

    def _take_refusal(self, request_id: str, complaint: Diagnostic) -> None:
        request = self._requests.get(request_id)
        if request is None:
            raise InfrastructureError(f"the daemon at {self.address} refuses: {complaint.message}")
        self._finish(request_id, failed_result(request, Status.INVALID_REQUEST, complaint))

    def _finish(self, request_id: str, result: EvalResult) -> None:
        request = self._requests.get(request_id)
        if request is None or request.digest != result.request_digest:
            self.dropped_messages += 1
            return
        self._forget(request_id)
        self._busy_until_s = 0.0
        self._window = min(self._window + 1 / self._window, self._max_in_flight)
        self._finished.append((request_id, result))

    def _forget(self, request_id: str) -> None:
        del self._requests[request_id]
        self._cancelled.discard(request_id)
        if request_id in self._sent:
            del self._sent[request_id]
        elif request_id in self._waiting:
            self._waiting.remove(request_id)


def _cancelled(request: EvalRequest) -> EvalResult:
    complaint = Diagnostic(phase=Phase.SERVICE, message="cancelled by the client")
    return failed_result(request, Status.CANCELLED, complaint)
