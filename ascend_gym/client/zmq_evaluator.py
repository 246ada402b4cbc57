"""The evaluator that uses one daemon, or several that share the requests."""

from __future__ import annotations

import itertools
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence

import zmq

from ascend_gym.client.daemon_link import FIRST_CONTACT_S
from ascend_gym.client.daemon_session import MAX_IN_FLIGHT, DaemonSession, RemoteEvaluation
from ascend_gym.client.local_daemon import LocalDaemon
from ascend_gym.core.errors import DaemonUnreachableError, InfrastructureError, MisuseError
from ascend_gym.core.protocols import Evaluation
from ascend_gym.core.records import (
    DaemonInfo,
    DeviceInfo,
    Diagnostic,
    EvalRequest,
    EvalResult,
    Phase,
    failed_result,
)
from ascend_gym.core.status import Status, rule_of

READY_TIMEOUT_S = 300.0
_PAUSE_S = 1.0
_JOIN_PAUSE_S = 0.1

log = logging.getLogger("ascend_gym.client")


class ZmqEvaluator:
    """An ``Evaluator`` on the daemon at ``address``, or on several whose results are comparable.

    It belongs to one thread. A single daemon gets all requests at once, as many as it accepts, and again
    after a reconnect. With several daemons, a request goes to the one with its chip and
    the most room; the others wait here, so that a daemon that is fast, or joins later, gets more of them.
    Requests of a lost daemon go to the others, and it serves again when it returns. If a daemon ends a
    request as ``infra_error``, others with its chip are tried; if all daemons with
    the chip are lost, the request ends as ``infra_error``, too. Each request is answered once.

    Args:
        address: ``tcp://HOST:PORT`` or ``ipc://PATH`` of one or several daemons; at least one must become
            ready, the others may join later.
        connect_timeout_s: how long a daemon may be unreachable before it counts as lost; by default 60 s, and
            10 s where it has not answered yet or there are others.
        ready_timeout_s: how long the first daemon may take to become ready.
        private_daemon: the daemon at ``address`` if this process owns it, so that its end is detected at
            once.
        on_close: called once when this evaluator is closed or garbage collected.
        max_in_flight: maximum number of requests with a daemon at a time.

    Attributes:
        address: all daemons, in or out of service, separated by commas.

    Raises:
        MisuseError: an address is invalid or given twice.
    """

    def __init__(
        self,
        address: str | Sequence[str],
        *,
        connect_timeout_s: float | None = None,
        ready_timeout_s: float = READY_TIMEOUT_S,
        private_daemon: LocalDaemon | None = None,
        on_close: Callable[[], None] | None = None,
        max_in_flight: int = MAX_IN_FLIGHT,
    ) -> None:
        addresses = [address] if isinstance(address, str) else list(address)
        if not addresses or len(set(addresses)) != len(addresses):
            raise MisuseError(f"expected the addresses of different daemons, got {addresses}")
        self.address = ", ".join(addresses)
        if connect_timeout_s is None and len(addresses) > 1:
            connect_timeout_s = FIRST_CONTACT_S
        self._others_timeout_s = FIRST_CONTACT_S if connect_timeout_s is None else connect_timeout_s
        self._ready_timeout_s = ready_timeout_s
        self._device: DeviceInfo | None = None
        self._waiting: deque[RemoteEvaluation] = deque()  # for one of several daemons
        self._finished: list[tuple[Evaluation, EvalResult]] = []
        self._poller = zmq.Poller()
        self._sessions = [
            DaemonSession(each, connect_timeout_s, private_daemon, on_close, max_in_flight)
            for each in addresses
        ]
        for source in itertools.chain.from_iterable(session.link.sources for session in self._sessions):
            self._poller.register(source, zmq.POLLIN)
        self._only = self._sessions[0] if len(self._sessions) == 1 else None

    @property
    def infos(self) -> dict[str, DaemonInfo]:
        """Capabilities of the daemons in service, by address."""
        return {each.address: each.info for each in self._sessions if each.in_service and each.info}

    @property
    def dropped_messages(self) -> int:
        """Number of ignored answers, to requests that are no longer open."""
        return sum(session.dropped_messages for session in self._sessions)

    def submit(self, request: EvalRequest) -> Evaluation:
        """Queue a request; one that is too large to send ends as ``invalid_request``.

        Raises:
            InfrastructureError: this evaluator is closed, its queue is full, or none of several
                daemons becomes ready.
        """
        self._check_open()
        evaluation = RemoteEvaluation(self, request)
        if self._only is not None:
            self._only.submit(evaluation)
        else:
            self._join()
            self._waiting.append(evaluation)
            self._dispatch()
        return evaluation

    def poll(self, timeout_s: float) -> list[tuple[Evaluation, EvalResult]]:
        """Return finished evaluations, waiting up to ``timeout_s`` for the first if any request is pending.

        Raises:
            DaemonUnreachableError: a request is pending, and all daemons have been unreachable for too long.
            InfrastructureError: the only daemon does not speak our protocol.
        """
        self._check_open()
        deadline_s = time.monotonic() + timeout_s
        self._receive()
        while not self._finished and self._is_pending:
            self._check_served()
            remaining_s = deadline_s - time.monotonic()
            self._wait(remaining_s)
            self._receive()
            if remaining_s <= 0:
                break
        finished, self._finished = self._finished, []
        return finished

    def cancel(self, evaluation: Evaluation) -> None:
        """Cancel a request unless it has finished; its result then has status ``cancelled``."""
        self._check_open()
        if evaluation.done or not isinstance(evaluation, RemoteEvaluation):
            return
        evaluation.cancelled = True
        if evaluation.session is not None:
            evaluation.session.cancel(evaluation)
        elif evaluation in self._waiting:
            self._waiting.remove(evaluation)
            self._answer(evaluation, evaluation.cancelled_result())

    def describe(self) -> DeviceInfo:
        """Return the device of the first daemon in service; the others differ only in host and chip.

        Waits until the first is ready, and for the others at most as long as they may be unreachable.

        Raises:
            DaemonUnreachableError: no daemon can be reached, or none becomes ready.
            MisuseError: the results of two daemons are not comparable.
        """
        self._check_open()
        if self._only is not None:
            self._device = None  # it may be another one by now
        self._join()
        self._receive()
        self._check_served()
        return next(iter(self.infos.values())).device

    def close(self) -> None:
        """Cancel pending requests and disconnect. Further calls raise ``InfrastructureError``."""
        for session in self._sessions:
            session.close()

    # --- daemons that come and go ---

    def _join(self) -> None:
        """Wait once for all daemons until the connect timeout, then for the first one."""
        if self._device is not None:
            return
        started_s = time.monotonic()
        for session in self._sessions:
            session.in_service, session.error = False, None
            session.ask_info()
        while not all(session.in_service for session in self._sessions):
            waited_s = time.monotonic() - started_s
            hopeless = all(session.error for session in self._sessions)
            patience_s = self._others_timeout_s if self.infos else self._ready_timeout_s
            if hopeless or waited_s >= patience_s:
                break
            self._wait(_JOIN_PAUSE_S)
            self._receive(strict=True)
        self._check_served()
        if not self.infos:
            raise DaemonUnreachableError(
                f"the daemon at {self.address} answers, but was not ready to evaluate within "
                f"{self._ready_timeout_s:g} s; see its messages"
            )
        for session in self._sessions:
            if not session.in_service:
                log.warning("%s is not in service: %s", session.address, session.problem)

    def _receive(self, *, strict: bool = False) -> None:
        """Process messages of the daemons and send them waiting requests."""
        for session in self._sessions:
            try:
                for evaluation, result in session.receive():
                    self._take(session, evaluation, result)
                session.check_reachable()
                session.error = None
            except InfrastructureError as error:  # unreachable, or what is there speaks another language
                session.error, session.problem = error, str(error)
                if session.in_service and self._only is None:
                    self._lose(session)
            if session.info is not None and not session.in_service:
                self._enlist(session, session.info, strict=strict)
        self._dispatch()

    def _enlist(self, session: DaemonSession, info: DaemonInfo, *, strict: bool) -> None:
        self._device = self._device or info.device
        problem = _difference(self._device, info.device)
        if problem is None:
            session.in_service, session.chips = True, info.chips
            return
        if strict:
            raise MisuseError(f"{session.address} measures differently: {problem}")
        if session.problem != problem:
            log.warning("%s is not in service: %s", session.address, problem)
        session.problem = problem

    def _lose(self, session: DaemonSession) -> None:
        log.warning("%s is lost: %s", session.address, session.problem)
        session.in_service = False
        for evaluation in reversed(session.withdraw()):
            if evaluation.cancelled:
                self._answer(evaluation, evaluation.cancelled_result())
            else:
                self._waiting.appendleft(evaluation)
        session.ask_info()

    def _check_served(self) -> None:
        if self._only is not None:
            if self._only.error is not None:
                raise self._only.error
        elif not self.infos:
            reasons = "; ".join(f"{session.address}: {session.problem}" for session in self._sessions)
            raise DaemonUnreachableError(f"none of the daemons is in service: {reasons}")

    @property
    def _is_pending(self) -> bool:
        return bool(self._waiting) or any(session.held for session in self._sessions)

    def _dispatch(self) -> None:
        """Send waiting requests to the least loaded daemons, oldest first."""
        kept: deque[RemoteEvaluation] = deque()
        while self._waiting and any(session.has_room for session in self._sessions):
            evaluation = self._waiting.popleft()
            session = _choose(self._sessions, evaluation)
            if problem := _lost_chip(self._sessions, evaluation.request.protocol.chip):
                complaint = Diagnostic(phase=Phase.SERVICE, message=problem)
                failed = failed_result(evaluation.request, Status.INFRA_ERROR, complaint)
                self._answer(evaluation, failed)
            elif session is None:
                kept.append(evaluation)
            else:
                session.submit(evaluation)
        self._waiting.extendleft(reversed(kept))

    def _take(self, session: DaemonSession, evaluation: RemoteEvaluation, result: EvalResult) -> None:
        evaluation.failed_at.add(session.address)
        others = {each.address for each in _able(self._sessions, evaluation.request)} - evaluation.failed_at
        if evaluation.cancelled and rule_of(result.status).retried:
            self._answer(evaluation, evaluation.cancelled_result())
        elif rule_of(result.status).retried and others:
            self._waiting.appendleft(evaluation)
        else:
            self._answer(evaluation, result)

    def _answer(self, evaluation: RemoteEvaluation, result: EvalResult) -> None:
        evaluation.finish(result)
        self._finished.append((evaluation, result))

    def _wait(self, timeout_s: float) -> None:
        wait_s = min(timeout_s, _PAUSE_S, *(session.pause_s for session in self._sessions))
        self._poller.poll(max(0, int(1000 * wait_s + 0.999)))

    def _check_open(self) -> None:
        if not all(session.link.is_open for session in self._sessions):
            raise InfrastructureError("this evaluator is closed; make a new one")


def _able(sessions: Sequence[DaemonSession], request: EvalRequest) -> list[DaemonSession]:
    """Return the daemons in service with the chip; if none has it, all of them, which then refuse."""
    serving = [session for session in sessions if session.in_service]
    return [session for session in serving if request.protocol.chip in session.chips] or serving


def _choose(sessions: Sequence[DaemonSession], evaluation: RemoteEvaluation) -> DaemonSession | None:
    """Return the daemon for a request; ``None`` while those that can serve it have no room."""
    able = _able(sessions, evaluation.request)
    fresh = [session for session in able if session.address not in evaluation.failed_at] or able
    free = [session for session in fresh if session.has_room]
    return min(free, key=lambda session: session.load, default=None)


def _lost_chip(sessions: Sequence[DaemonSession], chip: str) -> str | None:
    """Return the message about a chip that only lost daemons have; ``None`` for other chips."""
    having = [session for session in sessions if chip in session.chips]
    if not having or any(session.in_service for session in having):
        return None
    reasons = "; ".join(f"{session.address}: {session.problem}" for session in having)
    return f"the daemons with chip {chip} are lost: {reasons}"


def _difference(reference: DeviceInfo, device: DeviceInfo) -> str | None:
    """Return why results of two devices are not comparable; ``None`` if they are."""
    for name in ("backend", "toolchain_digest"):
        expected, found = getattr(reference, name), getattr(device, name)
        if expected != found:
            return f"its {name} is {found}, that of the others is {expected}; give daemons of one kind only"
    return None
