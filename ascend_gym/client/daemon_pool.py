"""One evaluator over several daemons."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import zmq

from ascend_gym.client.waiting import wait_until
from ascend_gym.client.zmq_evaluator import CONNECT_TIMEOUT_S, READY_TIMEOUT_S, ZmqEvaluator
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
from ascend_gym.core.status import Status, rule_of

REQUESTS_PER_SLOT = 2  # one that is worked on, and one to go on with at once
_TURN_S = 1.0

log = logging.getLogger("ascend_gym.client")


@dataclass
class _Member:
    """A daemon of the pool.

    Attributes:
        info: what it can do; ``None`` while it is not in service.
        chips: what it could measure for when it was in service last.
        in_flight: pool ids by the ids that the daemon's evaluator gave.
        problem: why it is not in service.
        answers: whether it can be waited for.
    """

    evaluator: ZmqEvaluator
    info: DaemonInfo | None = None
    chips: tuple[str, ...] = ()
    in_flight: dict[str, str] = field(default_factory=dict)
    problem: str = "it has not answered yet"
    answers: bool = True

    def room(self) -> int:
        """How many more requests it should have."""
        if self.info is None or not self.evaluator.is_connected:
            return 0
        return REQUESTS_PER_SLOT * self.info.slots - len(self.in_flight)

    def load(self) -> float:
        """Requests in flight for each slot."""
        return len(self.in_flight) / (self.info.slots if self.info else 1)


@dataclass
class _Pending:
    """A request that has not been answered, the daemons that could not serve it, and whether it is wanted."""

    request: EvalRequest
    failed_at: set[str] = field(default_factory=set)
    cancelled: bool = False
    member: _Member | None = None
    inner_id: str = ""


class DaemonPool:
    """Implements ``Evaluator`` on all daemons at ``addresses`` that measure alike, for one thread.

    A request goes to a daemon that has its chip and the most room; the rest wait here, so that a daemon
    that is fast, or joins later, gets more of them. What a lost daemon had is given to the others; it serves
    again when it is back. A daemon that ends a request as ``infra_error`` is not asked for it again as long
    as there are others with its chip; where all that have the chip are lost, the request ends so too. Each
    request is answered once.

    Args:
        addresses: daemons; at least one must get ready, the others may join later.
        connect_timeout_s: how long a daemon may be unreachable before it counts as lost.
        ready_timeout_s: how long the first daemon may take to get ready.

    Raises:
        MisuseError: an address is none or given twice, or two daemons measure differently.
        DaemonUnreachableError: no daemon can be reached.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        ready_timeout_s: float = READY_TIMEOUT_S,
    ) -> None:
        if not addresses or len(set(addresses)) != len(addresses):
            raise MisuseError(f"expected the addresses of different daemons, got {list(addresses)}")
        self._members: list[_Member] = []
        self._device: DeviceInfo | None = None
        self._pending: dict[str, _Pending] = {}
        self._waiting: deque[str] = deque()
        self._finished: list[tuple[str, EvalResult]] = []
        self._submitted = 0
        self._closed = False
        self._poller = zmq.Poller()
        try:
            for address in addresses:
                self._add(ZmqEvaluator(address, connect_timeout_s=connect_timeout_s))
            self._wait_ready(connect_timeout_s, ready_timeout_s)
        except (MisuseError, InfrastructureError):
            self.close()
            raise

    @property
    def infos(self) -> dict[str, DaemonInfo]:
        """What the daemons in service can do, by address."""
        return {member.evaluator.address: member.info for member in self._members if member.info}

    def submit(self, request: EvalRequest) -> str:
        """Queue a request and return its id.

        Raises:
            InfrastructureError: this evaluator is closed.
        """
        self._check_open()
        self._submitted += 1
        pool_id = f"{self._submitted}"
        self._pending[pool_id] = _Pending(request)
        self._waiting.append(pool_id)
        self._dispatch()
        return pool_id

    def poll(self, timeout_s: float) -> list[tuple[str, EvalResult]]:
        """Return finished pairs, waiting up to ``timeout_s`` for the first if something is pending.

        Raises:
            DaemonUnreachableError: something is pending and all daemons are lost.
        """
        self._check_open()
        self._turn()
        wait_until(lambda: bool(self._finished) or not self._pending, self._wait_served, timeout_s)
        finished, self._finished = self._finished, []
        return finished

    def cancel(self, request_id: str) -> None:
        """Stop a request if it has not finished; ``poll`` then returns it with status ``cancelled``."""
        self._check_open()
        pending = self._pending.get(request_id)
        if pending is None:
            return
        pending.cancelled = True
        if pending.member is not None:
            pending.member.evaluator.cancel(pending.inner_id)
            return
        self._waiting.remove(request_id)
        self._answer_cancelled(request_id)

    def describe(self) -> DeviceInfo:
        """Say what measures: the first daemon in service, which the others agree with but for host and chip.

        Raises:
            DaemonUnreachableError: all daemons are lost.
        """
        self._check_open()
        self._turn()
        self._check_served()
        return next(member.info.device for member in self._members if member.info)

    def close(self) -> None:
        """Withdraw what is pending and disconnect. Further calls raise ``InfrastructureError``."""
        for member in self._members:
            member.evaluator.close()
        self._closed = True

    # --- daemons that come and go ---

    def _add(self, evaluator: ZmqEvaluator) -> None:
        self._members.append(_Member(evaluator))
        for source in evaluator.sources:
            self._poller.register(source, zmq.POLLIN)
        evaluator.ask_info()

    def _wait_ready(self, connect_timeout_s: float, ready_timeout_s: float) -> None:
        """Wait for all daemons until the patience with unreachable ones ends, then for the first one."""
        started_s = time.monotonic()
        while not all(member.info for member in self._members):
            waited_s = time.monotonic() - started_s
            reachable = any(member.info or member.answers for member in self._members)
            if waited_s >= connect_timeout_s and (self.infos or not reachable):
                break
            if waited_s >= ready_timeout_s:
                break
            self._wait(_TURN_S / 10)
            self._turn(strict=True)
        self._check_served()
        for member in self._members:
            if member.info is None:
                log.warning("%s is not in service: %s", member.evaluator.address, member.problem)

    def _turn(self, *, strict: bool = False) -> None:
        """Take in what the daemons say and give them what waits."""
        for member in self._members:
            try:
                for inner_id, result in member.evaluator.poll(0):
                    self._take(member, inner_id, result)
                member.evaluator.check_reachable()
                member.answers = member.evaluator.is_connected
            except InfrastructureError as error:  # unreachable, or what is there speaks another language
                member.answers = False
                if member.info is not None:
                    self._lose(member, str(error))
                member.problem = str(error)
            if member.info is None and member.evaluator.info is not None:
                self._enlist(member, member.evaluator.info, strict=strict)
        self._dispatch()

    def _enlist(self, member: _Member, info: DaemonInfo, *, strict: bool) -> None:
        self._device = self._device or info.device
        problem = _difference(self._device, info.device)
        if problem is None:
            member.info, member.chips = info, info.chips
            return
        if strict:
            raise MisuseError(f"{member.evaluator.address} measures differently: {problem}")
        if member.problem != problem:
            log.warning("%s is not in service: %s", member.evaluator.address, problem)
        member.problem = problem

    def _lose(self, member: _Member, problem: str) -> None:
        log.warning("%s is lost: %s", member.evaluator.address, problem)
        member.info = None
        for pool_id in reversed(list(member.in_flight.values())):
            self._pending[pool_id].member = None
            if self._pending[pool_id].cancelled:
                self._answer_cancelled(pool_id)
            else:
                self._waiting.appendleft(pool_id)
        member.in_flight.clear()
        member.evaluator.withdraw()
        member.evaluator.ask_info()

    def _check_served(self) -> None:
        if any(member.info for member in self._members):
            return
        reasons = "; ".join(f"{member.evaluator.address}: {member.problem}" for member in self._members)
        raise DaemonUnreachableError(f"none of the daemons is in service: {reasons}")

    # --- requests ---

    def _dispatch(self) -> None:
        """Give waiting requests to the daemons with the least to do, oldest first."""
        kept: deque[str] = deque()
        while self._waiting and any(member.room() > 0 for member in self._members):
            pool_id = self._waiting.popleft()
            if self._fail_without_chip(pool_id):
                continue
            member = self._choose(self._pending[pool_id])
            if member is None:
                kept.append(pool_id)
            else:
                self._send(pool_id, member)
        self._waiting.extendleft(reversed(kept))

    def _fail_without_chip(self, pool_id: str) -> bool:
        """End a request for a chip that only lost daemons have."""
        request = self._pending[pool_id].request
        having = [member for member in self._members if request.protocol.chip in member.chips]
        if not having or any(member.info for member in having):
            return False
        reasons = "; ".join(f"{member.evaluator.address}: {member.problem}" for member in having)
        message = f"the daemons with chip {request.protocol.chip} are lost: {reasons}"
        complaint = Diagnostic(phase=Phase.SERVICE, message=message)
        self._answer(pool_id, failed_result(request, Status.INFRA_ERROR, complaint))
        return True

    def _able(self, request: EvalRequest) -> list[_Member]:
        """Return the daemons in service that have the chip; if none has, any may say so."""
        serving = [member for member in self._members if member.info is not None]
        return [member for member in serving if request.protocol.chip in member.chips] or serving

    def _choose(self, pending: _Pending) -> _Member | None:
        """Return the daemon for a request, or ``None`` while those that can serve it have no room."""
        able = self._able(pending.request)
        fresh = [member for member in able if member.evaluator.address not in pending.failed_at] or able
        free = [member for member in fresh if member.room() > 0]
        return min(free, key=_Member.load, default=None)

    def _send(self, pool_id: str, member: _Member) -> None:
        pending = self._pending[pool_id]
        pending.inner_id = member.evaluator.submit(pending.request)
        pending.member = member
        member.in_flight[pending.inner_id] = pool_id

    def _take(self, member: _Member, inner_id: str, result: EvalResult) -> None:
        pool_id = member.in_flight.pop(inner_id)
        pending = self._pending[pool_id]
        pending.member = None
        pending.failed_at.add(member.evaluator.address)
        able = {other.evaluator.address for other in self._able(pending.request)}
        if pending.cancelled and rule_of(result.status).retried:
            self._answer_cancelled(pool_id)
        elif rule_of(result.status).retried and able - pending.failed_at:
            self._waiting.appendleft(pool_id)
        else:
            self._answer(pool_id, result)

    def _answer_cancelled(self, pool_id: str) -> None:
        complaint = Diagnostic(phase=Phase.SERVICE, message="cancelled by the client")
        self._answer(pool_id, failed_result(self._pending[pool_id].request, Status.CANCELLED, complaint))

    def _answer(self, pool_id: str, result: EvalResult) -> None:
        del self._pending[pool_id]
        self._finished.append((pool_id, result))

    def _wait_served(self, remaining_s: float) -> None:
        """Wait for what the daemons in service say, and take it in."""
        self._check_served()
        self._wait(remaining_s)
        self._turn()

    def _wait(self, timeout_s: float) -> None:
        self._poller.poll(int(1000 * min(timeout_s, _TURN_S) + 0.999))

    def _check_open(self) -> None:
        if self._closed:
            raise InfrastructureError("this evaluator is closed; make a new one")


def _difference(reference: DeviceInfo, device: DeviceInfo) -> str | None:
    """Return why results of two devices cannot be compared, or ``None``."""
    for name in ("backend", "toolchain_digest"):
        expected, found = getattr(reference, name), getattr(device, name)
        if expected != found:
            return f"its {name} is {found}, that of the others is {expected}; give daemons of one kind only"
    return None
