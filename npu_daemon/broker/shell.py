"""The broker's shell: sockets, worker processes, signals and files around ``BrokerState``."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import sqlite3
import time
from collections import deque
from functools import partial

import zmq

from ascend_gym.core.codec import CodecError, Kind, WireMessage
from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.records import (
    DaemonStatus,
    Diagnostic,
    EvalRequest,
    EvalResult,
    Phase,
    TenantName,
    WorkerCount,
)
from npu_daemon.broker.config import BrokerConfig
from npu_daemon.broker.connections import Connections
from npu_daemon.broker.events import (
    Action,
    Busy,
    Cancel,
    ClientGone,
    Drain,
    Event,
    Expel,
    GrantDevice,
    KillWorker,
    Ping,
    Ready,
    Record,
    Reply,
    Resize,
    Room,
    SendJob,
    Start,
    StartWorker,
    Stop,
    Submit,
    Tick,
    WorkerGone,
)
from npu_daemon.broker.sockets import (
    OF_TENANT,
    Arrival,
    arrived,
    bind_router,
    client_message,
    send_to,
    worker_event,
    worker_message,
)
from npu_daemon.broker.status import status_of
from npu_daemon.broker.worker_processes import WorkerProcesses
from npu_daemon.security import Gatekeeper, check_bind_address
from npu_daemon.service import result_key

TICK_MS = 500
RECORD_MS = 20  # at most so much later an accepted job is on record
_FLUSH_MS = 1000
_NEW_OBJECTS = 100_000  # before garbage is looked for: nearly all that a broker makes is freed without
_KEPT_ROUTES = 4096  # before those of clients without jobs are forgotten
_NAMED_ITSELF = "leave ZMQ_ROUTING_ID unset: the daemon names connections itself"

log = logging.getLogger("npu_daemon")


class Broker:
    """Serves clients until it is drained, stopped, or fails. Runs in the main thread.

    Raises:
        MisuseError: the address may not be bound, or keys are unusable.
        InfrastructureError: the address cannot be bound.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._state = config.state()
        self._started_s = time.monotonic()
        self._context = zmq.Context()
        self._gatekeeper: Gatekeeper | None = None
        workers_address = f"ipc://{config.private_folder.path}/workers"
        try:
            check_bind_address(config.bind, config.policy)
            if config.policy is not None:
                self._gatekeeper = Gatekeeper(self._context, config.policy)
            self._clients, self.address = bind_router(self._context, config.bind, _FLUSH_MS, self._gatekeeper)
            self._workers, _ = bind_router(self._context, workers_address, linger_ms=0)
        except (MisuseError, InfrastructureError):
            self._close_sockets()
            raise
        self._processes = WorkerProcesses(
            partial(config.worker_command, workers_address), config.private_folder.path
        )
        self._poller = zmq.Poller()
        self._connections = Connections()
        self._routes: dict[bytes, bytes] = {}  # from a client to the connection that it spoke over last
        self._curious: dict[bytes, None] = {}
        self._due: deque[Action] = deque()
        self._unrecorded: list[Record] = []
        self._recorded_s = 0.0
        self._stop: Stop | None = None
        self._ticked_s = 0.0

    def run(self) -> str | None:
        """Serve; return ``None`` after a requested stop, else what went wrong.

        Raises:
            InfrastructureError: the journal cannot be read or written.
        """
        wake_fd = self._watch_signals()
        gate = self._gatekeeper.socket if self._gatekeeper else None
        ended_fd = self._processes.ended_fd
        asked_fd, control_fd = self._config.questions.asked_fd, self._config.control_fd
        for source in (gate, self._clients, self._workers, wake_fd, ended_fd, asked_fd, control_fd):
            if source is not None:
                self._poller.register(source, zmq.POLLIN)
        try:
            if self._config.journal is not None:
                self._feed(self._config.journal.load())
            gc.freeze()
            gc.set_threshold(_NEW_OBJECTS)
            self._look_for_room()
            self._feed(Start())
            self._act()
            while self._stop is None:
                self._turn(wake_fd)
            self._write_records()
        finally:
            self._close()
        return self._stop.failure

    def _turn(self, wake_fd: int) -> None:
        ready = dict(self._poller.poll(RECORD_MS if self._unrecorded else TICK_MS))
        with contextlib.suppress(BlockingIOError):
            # Signals first, so that messages sent after a signal are handled after it.
            self._on_signals(os.read(wake_fd, 64))
        if self._gatekeeper is not None and self._gatekeeper.socket in ready:
            self._gatekeeper.answer()
        if self._workers in ready:
            for arrival in arrived(self._workers):
                self._from_worker(arrival.peer.decode(errors="replace"), arrival.message)
        if self._clients in ready:
            for arrival in arrived(self._clients, guarded=self._gatekeeper is not None):
                self._admit(arrival)
        if self._processes.ended_fd in ready:
            self._reap()
        if self._config.control_fd in ready:
            log.info("the process that started this daemon is gone")
            self._stop = Stop()
        if time.monotonic() - self._ticked_s >= TICK_MS / 1000:
            self._ticked_s = time.monotonic()
            self._look_for_room()
            self._feed(Tick())
            self._forget_routes()
            for tenant in self._gatekeeper.lapsed() if self._gatekeeper else ():
                self._cut(tenant, "its key is not allowed any more")
            self._tell_device()
        self._act()
        if self._config.questions.asked_fd in ready:
            self._config.questions.answer(self._status)

    # --- input ---

    def _feed(self, event: Event) -> None:
        self._due += self._state.handle(event, time.monotonic())

    def _admit(self, arrival: Arrival) -> None:
        """Take a message from whoever may send it.

        Results go over the connection that a client of the same tenant has spoken over last, and nobody can
        claim the name of another's connection.
        """
        if arrival.fd is not None:
            self._connections.note(arrival.fd, arrival.tenant, arrival.peer)
        if self._gatekeeper is not None and not self._gatekeeper.admits(arrival.tenant):
            self._connections.cut(arrival.tenant)
            return
        self._routes[arrival.client] = arrival.peer
        if not arrival.named_by_us:
            self._refuse(arrival.client, arrival.message.request_id, _NAMED_ITSELF)
            return
        self._from_client(arrival.tenant, arrival.client, arrival.message)

    def _look_for_room(self) -> None:
        problem = self._config.room_problem()
        if bool(problem) != bool(self._state.no_room):
            log.warning("%s", f"no evaluation begins: {problem}" if problem else "there is room again")
        self._feed(Room(problem))

    def _forget_routes(self) -> None:
        if len(self._routes) > _KEPT_ROUTES:
            kept = {name.client for name in self._state.book.job_ids} | self._curious.keys()
            self._routes = {client: peer for client, peer in self._routes.items() if client in kept}

    def _cut(self, tenant: str, reason: str) -> None:
        """Close a tenant's connections and end its jobs."""
        count = self._connections.cut(tenant)
        log.warning("%s: %d connections closed, because %s", tenant, count, reason)
        self._feed(Expel(tenant.encode() + OF_TENANT))

    def _from_client(self, tenant: str, client: bytes, message: WireMessage | CodecError) -> None:
        if isinstance(message, CodecError):
            self._refuse(client, message.request_id, message.reason)
        elif isinstance(message.payload, EvalRequest) and message.kind is Kind.SUBMIT:
            request = message.payload
            stored = self._stored_result(request)
            self._feed(Submit(client, message.request_id, request, stored, tenant))
        elif message.kind is Kind.CANCEL:
            self._feed(Cancel(client, message.request_id))
        elif message.kind is Kind.DESCRIBE:
            self._curious[client] = None
            self._tell_device()
        elif message.kind is Kind.STATUS:
            self._send_client(client, WireMessage(Kind.REPORT, payload=self._status()))
        elif message.kind in (Kind.DRAIN, Kind.RESIZE, Kind.EXPEL):
            self._from_operator(tenant, client, message)
        else:
            self._refuse(client, message.request_id, f"{message.kind.name} is not a message of clients")

    def _from_operator(self, tenant: str, client: bytes, message: WireMessage) -> None:
        policy = self._config.policy
        if policy is not None and tenant not in policy.operators:
            self._refuse(client, "", f"{tenant} is no operator of this daemon")
            return
        log.info("%s asks for %s", tenant, message.kind.name)
        if isinstance(message.payload, TenantName):
            if self._gatekeeper is None:
                self._refuse(client, "", "this daemon has no keys, so that all its clients are one tenant")
                return
            self._gatekeeper.expel(message.payload.tenant)
            self._cut(message.payload.tenant, f"{tenant} has expelled it")
        elif isinstance(message.payload, WorkerCount):
            self._feed(Resize(message.payload.workers))
        else:
            self._feed(Drain())
        self._send_client(client, WireMessage(Kind.REPORT, payload=self._status()))

    def _from_worker(self, worker_id: str, message: WireMessage | CodecError) -> None:
        if isinstance(message, CodecError):
            log.warning("worker %s sent nonsense: %s", worker_id, message.reason)
            return
        event = worker_event(worker_id, message)
        if event is not None:
            self._feed(event)

    def _reap(self) -> None:
        for ended in self._processes.reap():
            gone = WorkerGone(*ended)
            log.warning("%s is gone: %s", gone.worker_id, gone.reason)
            self._feed(gone)

    def _stored_result(self, request: EvalRequest) -> EvalResult | None:
        if not request.use_cache or self._state.info is None:
            return None
        try:
            return self._config.store.get(result_key(request, self._state.info.device))
        except sqlite3.Error as error:
            log.warning("the result store cannot be read: %s", error)
            return None

    def _watch_signals(self) -> int:
        read_end, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        return read_end

    def _on_signals(self, numbers: bytes) -> None:
        if signal.SIGINT in numbers or self._state.draining:
            self._stop = Stop()
        elif signal.SIGTERM in numbers:
            log.info("draining: running evaluations are finished; signal again to stop at once")
            self._feed(Drain())

    # --- output ---

    def _act(self) -> None:
        """Carry out the pending actions. Replies depend on the journal, which is written before them.

        Messages to workers do not wait for it. Records without a pending reply are written a little later,
        for several events at once.
        """
        while self._due:
            due, self._due = self._due, deque()
            replies = []
            for action in due:
                if isinstance(action, Record):
                    self._unrecorded.append(action)
                elif isinstance(action, Reply | Busy | Ping):
                    replies.append(action)
                else:
                    self._do(action)
            if replies:
                self._write_records()
            for reply in replies:
                self._send_client(reply.client, client_message(reply))
        if time.monotonic() - self._recorded_s >= RECORD_MS / 1000:
            self._write_records()

    def _write_records(self) -> None:
        if self._unrecorded and self._config.journal is not None:
            self._config.journal.write(self._unrecorded)
        self._unrecorded.clear()
        self._recorded_s = time.monotonic()

    def _do(self, action: Action) -> None:
        if isinstance(action, SendJob | GrantDevice):
            send_to(self._workers, action.worker_id.encode(), worker_message(action))
        elif isinstance(action, StartWorker):
            self._processes.start(action.worker_id)
        elif isinstance(action, KillWorker):
            self._processes.kill(action.worker_id)
        elif isinstance(action, Ready):
            self._announce()
        elif isinstance(action, Stop):
            self._stop = action

    def _announce(self) -> None:
        info = self._state.info
        if info is not None:
            log.info(
                "ready at %s: %s backend, chip %s, candidates confined by %s",
                self.address,
                info.device.backend,
                info.device.chip,
                info.device.sandbox,
            )
        if self._config.control_fd is not None:
            os.write(self._config.control_fd, f"{self.address}\n".encode())
        self._tell_device()

    def _tell_device(self) -> None:
        """Send clients the capabilities of the daemon or, until it is ready, a sign that it is starting."""
        offer = self._state.offer()
        answer = WireMessage(Kind.BEAT) if offer is None else WireMessage(Kind.DEVICE, payload=offer)
        for client in list(self._curious):
            self._send_client(client, answer)
        if offer is not None:
            self._curious.clear()

    def _status(self) -> DaemonStatus:
        up_s = time.monotonic() - self._started_s
        status = status_of(self._state, self.address, up_s, self._connections.count())
        try:
            repairs = {f"repaired_{part}": count for part, count in self._config.repairs().items()}
        except sqlite3.Error as error:
            log.warning("the result store cannot be read: %s", error)
            return status
        return status.model_copy(update={"counts": {**status.counts, **repairs}})

    def _refuse(self, client: bytes, request_id: str, reason: str) -> None:
        complaint = Diagnostic(phase=Phase.REQUEST, message=reason)
        self._send_client(client, WireMessage(Kind.REFUSED, request_id, payload=complaint))

    def _send_client(self, client: bytes, message: WireMessage) -> None:
        peer = self._routes.get(client)  # none after a restart, until the client is heard of
        if peer is None or not send_to(self._clients, peer, message):
            self._routes.pop(client, None)
            self._curious.pop(client, None)
            self._feed(ClientGone(client))

    def _close(self) -> None:
        self._processes.close()
        if self._config.journal is not None:
            self._config.journal.close()
        self._close_sockets()

    def _close_sockets(self) -> None:
        self._context.destroy()
        self._config.private_folder.remove()
