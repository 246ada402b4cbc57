"""A client's requests at one daemon, and the state of that daemon."""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable

from ascend_gym.client.daemon_link import DaemonLink
from ascend_gym.client.local_daemon import LocalDaemon
from ascend_gym.core.codec import Kind, WireMessage
from ascend_gym.core.errors import DaemonUnreachableError, InfrastructureError, MisuseError
from ascend_gym.core.protocols import Evaluation, Evaluator
from ascend_gym.core.records import (
    DaemonInfo,
    Diagnostic,
    EvalRequest,
    EvalResult,
    Phase,
    Record,
    failed_result,
)
from ascend_gym.core.status import Status

MAX_IN_FLIGHT = 500
REQUESTS_PER_SLOT = 2  # one in progress, and one to start next without a delay
BUSY_PAUSE_S = 0.5
REMIND_S = 20.0
SILENCE_S = 60.0
FIRST_ANSWER_S = 10.0  # a daemon that is starting sends a message twice a second

log = logging.getLogger("ascend_gym.client")


class RemoteEvaluation(Evaluation):
    """A request to daemons.

    Attributes:
        session: the daemon that has it or will get it next; ``None`` while it waits for one.
        failed_at: addresses of daemons that failed to serve it.
        cancelled: whether its result is no longer wanted.
    """

    def __init__(self, evaluator: Evaluator, request: EvalRequest) -> None:
        super().__init__(evaluator, request)
        self.session: DaemonSession | None = None
        self.failed_at: set[str] = set()
        self.cancelled = False

    def cancelled_result(self) -> EvalResult:
        """Return the result of a request that was cancelled before it was evaluated."""
        complaint = Diagnostic(phase=Phase.SERVICE, message="cancelled by the client")
        return failed_result(self.request, Status.CANCELLED, complaint)


class DaemonSession:
    """Sends requests to one daemon and processes its answers, without blocking.

    It reconnects automatically and then resubmits unanswered requests under the same ids, which the daemon
    recognises. At most ``max_in_flight`` requests are with the daemon at a time, and fewer if it reports
    that it is busy; the others wait here.

    Args:
        address: ``tcp://HOST:PORT`` or ``ipc://PATH`` of a daemon.
        connect_timeout_s: see ``DaemonLink``.
        private_daemon: the daemon at ``address`` if this process owns it: its end is detected at once.
        on_close: called once when this session is closed or garbage collected.
        max_in_flight: maximum number of requests with the daemon at a time.

    Attributes:
        info: capabilities that the daemon reported; ``None`` before its first answer.
        chips: chips that it supported when it was last in service.
        in_service: whether it gets requests.
        problem: why it is out of service.
        error: error of the last contact; ``None`` if there was none.
        link: the connection.
        dropped_messages: number of ignored answers, to requests that are no longer open.

    Raises:
        MisuseError: ``address`` is invalid.
    """

    def __init__(
        self,
        address: str,
        connect_timeout_s: float | None,
        private_daemon: LocalDaemon | None = None,
        on_close: Callable[[], None] | None = None,
        max_in_flight: int = MAX_IN_FLIGHT,
    ) -> None:
        self.address = address
        self.info: DaemonInfo | None = None
        self.chips: tuple[str, ...] = ()
        self.in_service = False
        self.problem = "it has not answered yet"
        self.error: InfrastructureError | None = None
        self.dropped_messages = 0
        self._max_in_flight = max_in_flight
        self._window = float(max_in_flight)
        self._held: dict[str, RemoteEvaluation] = {}
        self._waiting: deque[str] = deque()
        self._sent: dict[str, None] = {}
        self._withdrawn: list[str] = []
        self._finished: list[tuple[RemoteEvaluation, EvalResult]] = []
        self._asked = False
        self._delay = ""
        self._submitted = 0
        self._name = uuid.uuid4().hex  # by which the daemon knows it after a lost connection
        self._connections = 0
        self._busy_until_s = 0.0
        self._reminded_s = 0.0
        self.link = DaemonLink(address, connect_timeout_s, private_daemon, on_close)

    @property
    def pause_s(self) -> float:
        """Maximum seconds to wait for the daemon before ``receive`` and ``check_reachable`` are due."""
        pause_s = BUSY_PAUSE_S if self._waiting else min(REMIND_S, SILENCE_S, FIRST_ANSWER_S)
        return pause_s if self.link.is_connected else min(pause_s, self.link.patience_s)

    @property
    def held(self) -> int:
        """Number of its requests that have not finished."""
        return len(self._held)

    @property
    def load(self) -> float:
        """Unfinished requests per slot of the daemon."""
        return self.held / (self.info.slots if self.info else 1)

    @property
    def has_room(self) -> bool:
        """Whether it should have more requests, where there are other daemons to give them to."""
        if not self.in_service or self.info is None or not self.link.is_connected:
            return False
        return self.held < REQUESTS_PER_SLOT * self.info.slots

    def submit(self, evaluation: RemoteEvaluation) -> None:
        """Send a request, or queue it; one that is too large to send ends as ``invalid_request``.

        Raises:
            InfrastructureError: the queue is full.
        """
        self._submitted += 1
        request_id = evaluation.request_id = f"{self._name}.{self._submitted}"
        evaluation.session = self
        self._held[request_id] = evaluation
        self._waiting.append(request_id)
        try:
            self._send_waiting()
        except InfrastructureError:
            self._forget(request_id)
            raise

    def cancel(self, evaluation: RemoteEvaluation) -> None:
        """Cancel a request, at the daemon if it has been sent, else here."""
        if evaluation.request_id in self._sent:
            self.link.send(WireMessage(Kind.CANCEL, evaluation.request_id))
        else:
            self._finish(evaluation.request_id, evaluation.cancelled_result())

    def ask_info(self) -> None:
        """Ask the daemon for its capabilities; ``info`` has the answer once it was received."""
        self.info = None
        self._asked = True
        self.link.expect_answers()
        self.link.send(WireMessage(Kind.DESCRIBE))

    def receive(self) -> list[tuple[RemoteEvaluation, EvalResult]]:
        """Process received messages, send queued ones, and return what has finished.

        Raises:
            InfrastructureError: the other end does not speak our protocol.
        """
        messages = self.link.received()
        if self.link.connections > self._connections:
            self._resume(again=self._connections > 0)
        for message in messages:
            self._take(message)
        self._remind()
        self._send_waiting()
        finished, self._finished = self._finished, []
        return finished

    def check_reachable(self) -> None:
        """Raise if the daemon has been unreachable or silent for too long.

        Raises:
            DaemonUnreachableError: as above.
        """
        self.link.check_reachable()
        silent_s = time.monotonic() - self.link.heard_s
        patience_s = max(FIRST_ANSWER_S, self.link.patience_s)
        if self._asked and self.info is None and self.link.is_connected and silent_s > patience_s:
            raise self.link.no_answer(patience_s)
        if self._sent and silent_s > SILENCE_S:
            raise DaemonUnreachableError(
                f"the daemon at {self.address} has said nothing for {silent_s:.0f} s, although it has "
                "requests of ours; see its messages"
            )

    def withdraw(self) -> list[RemoteEvaluation]:
        """Give up all pending requests here and, at the next connection, there; return them, oldest first."""
        self._withdrawn += self._sent
        evaluations = list(self._held.values())
        for request_id in list(self._held):
            self._forget(request_id)
        return evaluations

    def close(self) -> None:
        """Withdraw what is pending and disconnect; closing again does nothing."""
        if self.link.is_open and self.link.is_connected:
            for request_id in self._sent:
                self.link.send(WireMessage(Kind.CANCEL, request_id))
        self.link.close()

    def _resume(self, *, again: bool) -> None:
        """Say on a new connection what the daemon may not have got on the last one."""
        self._connections = self.link.connections
        if not again:
            return
        for request_id in self._withdrawn:
            self.link.send(WireMessage(Kind.CANCEL, request_id))
        self._withdrawn.clear()
        if self._asked and self.info is None:
            self.link.send(WireMessage(Kind.DESCRIBE))
        self._submit_again()

    def _remind(self) -> None:
        """Ask again if a connected daemon is silent, because an answer may have been lost."""
        now_s = time.monotonic()
        silent = self.link.is_connected and now_s - self.link.heard_s > REMIND_S
        if self._sent and silent and self._reminded_s < self.link.heard_s:
            self._reminded_s = now_s
            self._submit_again()

    def _submit_again(self) -> None:
        for request_id in self._sent:
            self.link.send(WireMessage(Kind.SUBMIT, request_id, payload=self._held[request_id].request))
            if self._held[request_id].cancelled:
                self.link.send(WireMessage(Kind.CANCEL, request_id))

    def _send_waiting(self) -> None:
        while self._waiting and len(self._sent) < int(self._window):
            if time.monotonic() < self._busy_until_s:
                return
            request_id = self._waiting[0]
            request = self._held[request_id].request
            if not self._sent:
                self.link.expect_answers()
            try:
                self.link.send(WireMessage(Kind.SUBMIT, request_id, payload=request))
            except MisuseError as error:
                self._finish(
                    request_id, _invalid(request, Diagnostic(phase=Phase.REQUEST, message=str(error)))
                )
                continue
            self._waiting.popleft()
            self._sent[request_id] = None

    def _take(self, message: WireMessage) -> None:
        if isinstance(message.payload, DaemonInfo):
            self.info = message.payload
        elif isinstance(message.payload, EvalResult):
            self._finish(message.request_id, message.payload)
        elif message.kind is Kind.BUSY:
            self._postpone(message.request_id)
            self._tell_delay(message.payload)
        elif isinstance(message.payload, Diagnostic):
            self._take_refusal(message.request_id, message.payload)

    def _postpone(self, request_id: str) -> None:
        """Keep a request that the daemon did not accept, and send nothing more for a while.

        Afterwards the daemon gets at most as many requests at a time as it has accepted, then slowly more.
        """
        if request_id not in self._sent:
            return
        evaluation = self._held[request_id]
        if evaluation.cancelled:
            self._finish(request_id, evaluation.cancelled_result())
            return
        del self._sent[request_id]
        self._waiting.append(request_id)
        self._window = float(max(1, len(self._sent)))
        self._busy_until_s = time.monotonic() + BUSY_PAUSE_S

    def _tell_delay(self, complaint: Record | None) -> None:
        """Log what requests wait for, once until it is something else."""
        reason = complaint.message if isinstance(complaint, Diagnostic) else ""
        if reason.partition(" ")[0] != self._delay.partition(" ")[0]:
            log.warning("%s does not take requests now: %s", self.address, reason)
        self._delay = reason

    def _take_refusal(self, request_id: str, complaint: Diagnostic) -> None:
        evaluation = self._held.get(request_id)
        if evaluation is None:
            raise InfrastructureError(f"the daemon at {self.address} refuses: {complaint.message}")
        self._finish(request_id, _invalid(evaluation.request, complaint))

    def _finish(self, request_id: str, result: EvalResult) -> None:
        evaluation = self._held.get(request_id)
        if evaluation is None or evaluation.request.digest != result.request_digest:
            self.dropped_messages += 1
            return
        self._forget(request_id)
        self._busy_until_s = 0.0
        self._window = min(self._window + 1 / self._window, self._max_in_flight)
        self._finished.append((evaluation, result))

    def _forget(self, request_id: str) -> None:
        self._held.pop(request_id).session = None
        if request_id in self._sent:
            del self._sent[request_id]
        elif request_id in self._waiting:
            self._waiting.remove(request_id)


def _invalid(request: EvalRequest, complaint: Diagnostic) -> EvalResult:
    return failed_result(request, Status.INVALID_REQUEST, complaint)
