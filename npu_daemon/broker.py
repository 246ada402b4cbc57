"""The broker's shell: sockets, worker processes and signals around ``BrokerState``."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import zmq

from ascend_gym.core.codec import MAX_PAYLOAD_BYTES, CodecError, Kind, WireMessage, decode, encode
from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.private_folder import PrivateFolder
from ascend_gym.core.protocols import ResultStore
from ascend_gym.core.records import DaemonInfo, Diagnostic, EvalRequest, EvalResult, Phase
from npu_daemon.broker_events import (
    Action,
    Cancel,
    ClientGone,
    Drain,
    Event,
    KillWorker,
    Ready,
    Reply,
    SendJob,
    Start,
    StartWorker,
    Stop,
    Submit,
    Tick,
    WorkerBeat,
    WorkerGone,
    WorkerReady,
    WorkerResult,
)
from npu_daemon.broker_state import BrokerState
from npu_daemon.service import result_key
from npu_daemon.worker_processes import WorkerProcesses

TICK_MS = 500
_FLUSH_MS = 1000
_SEND_QUEUE = 20_000
_MESSAGES_PER_TURN = 1_000

log = logging.getLogger("npu_daemon")


def check_bind_address(address: str) -> None:
    """Refuse addresses that other hosts could reach.

    Raises:
        MisuseError: ``address`` is neither ``ipc://`` nor ``tcp://`` on a loopback interface.
    """
    scheme, separator, rest = address.partition("://")
    if separator and scheme == "ipc" and rest:
        return
    host, colon, _ = rest.rpartition(":")
    if scheme != "tcp" or not colon:
        raise MisuseError(f"cannot bind {address!r}: use tcp://127.0.0.1:PORT (or :*) or ipc:///PATH")
    if host == "localhost":
        return
    try:
        loopback = ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise MisuseError(
            f"cannot bind {address!r}: a daemon runs whatever code it is sent, so it listens on loopback or "
            f"ipc only; from another host use an ssh tunnel (ssh -L 5710:127.0.0.1:5710 HOST)"
        )


@dataclass(frozen=True)
class BrokerConfig:
    """What a broker serves.

    Attributes:
        bind: where clients connect.
        workers: number of worker processes.
        worker_command: command line of a worker, from the broker's address for workers, the worker's id and
            its folder for temporary files.
        store: results that may be returned at once.
        private_folder: folder of this user alone for the workers' socket and scratch files; removed at the
            end.
        control_fd: descriptor (one end of a socket pair) on which the bound address is written when the
            daemon is ready; the daemon ends when the other end is closed.
    """

    bind: str
    workers: int
    worker_command: Callable[[str, str, Path], Sequence[str]]
    store: ResultStore
    private_folder: PrivateFolder
    control_fd: int | None = None


class Broker:
    """Serves clients until it is drained, told to stop, or cannot go on. Lives in the main thread.

    Raises:
        MisuseError: the address may not be bound.
        InfrastructureError: the address cannot be bound.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._state = BrokerState(workers_wanted=config.workers)
        self._context = zmq.Context()
        workers_address = f"ipc://{config.private_folder.path}/workers"
        try:
            check_bind_address(config.bind)
            self._clients, self.address = self._bind(config.bind, _FLUSH_MS)
            self._workers, _ = self._bind(workers_address, linger_ms=0)
        except (MisuseError, InfrastructureError):
            self._close_sockets()
            raise
        self._processes = WorkerProcesses(
            partial(config.worker_command, workers_address), config.private_folder.path
        )
        self._poller = zmq.Poller()
        self._curious: list[bytes] = []
        self._info: DaemonInfo | None = None
        self._stop: Stop | None = None

    def run(self) -> str | None:
        """Serve. Returns ``None`` after a stop that was asked for, else what went wrong."""
        wake_fd = self._watch_signals()
        for source in (self._clients, self._workers, wake_fd, self._config.control_fd):
            if source is not None:
                self._poller.register(source, zmq.POLLIN)
        try:
            self._feed(Start())
            while self._stop is None:
                self._turn(wake_fd)
        finally:
            self._close()
        return self._stop.failure

    def _turn(self, wake_fd: int) -> None:
        ready = dict(self._poller.poll(TICK_MS))
        with contextlib.suppress(
            BlockingIOError
        ):  # signals first: what is sent after one is handled after it
            self._on_signals(os.read(wake_fd, 64))
        if self._clients in ready:
            self._drain_socket(self._clients, self._from_client)
        if self._workers in ready:
            self._drain_socket(self._workers, self._from_worker)
        for source in ready:
            if isinstance(source, int) and self._processes.watches(source):
                self._poller.unregister(source)
                gone = WorkerGone(*self._processes.reap(source))
                log.warning("%s is gone: %s", gone.worker_id, gone.reason)
                self._feed(gone)
        if self._config.control_fd in ready:
            log.info("the process that started this daemon is gone")
            self._stop = Stop()
        self._feed(Tick())

    def _bind(self, address: str, linger_ms: int) -> tuple[zmq.Socket[bytes], str]:
        socket = self._context.socket(zmq.ROUTER)
        for option, value in (
            (zmq.ROUTER_MANDATORY, 1),
            (zmq.ROUTER_HANDOVER, 1),
            (zmq.MAXMSGSIZE, MAX_PAYLOAD_BYTES),
            (zmq.SNDHWM, _SEND_QUEUE),
            (zmq.LINGER, linger_ms),
        ):
            socket.setsockopt(option, value)
        previous_mask = os.umask(0o077)
        try:
            socket.bind(address)
        except zmq.ZMQError as error:
            socket.close(0)
            raise InfrastructureError(f"cannot bind {address}: {error}") from error
        finally:
            os.umask(previous_mask)
        return socket, socket.getsockopt_string(zmq.LAST_ENDPOINT)

    # --- what comes in ---

    def _drain_socket(
        self, socket: zmq.Socket[bytes], handle: Callable[[bytes, WireMessage | CodecError], None]
    ) -> None:
        for _ in range(_MESSAGES_PER_TURN):
            try:
                peer, *frames = socket.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return
            handle(peer, decode(frames))

    def _from_client(self, client: bytes, message: WireMessage | CodecError) -> None:
        if isinstance(message, CodecError):
            self._refuse(client, message.request_id, message.reason)
        elif message.kind is Kind.SUBMIT and isinstance(message.payload, EvalRequest):
            request = message.payload
            self._feed(Submit(client, message.request_id, request, self._stored_result(request)))
        elif message.kind is Kind.CANCEL:
            self._feed(Cancel(client, message.request_id))
        elif message.kind is Kind.DESCRIBE:
            self._curious.append(client)
            self._tell_device()
        else:
            self._refuse(client, message.request_id, f"{message.kind.name} is not a message of clients")

    def _from_worker(self, peer: bytes, message: WireMessage | CodecError) -> None:
        worker_id = peer.decode(errors="replace")
        if isinstance(message, CodecError):
            log.warning("worker %s sent nonsense: %s", worker_id, message.reason)
        elif isinstance(message.payload, DaemonInfo):
            self._info = message.payload.model_copy(update={"slots": self._config.workers})
            self._feed(WorkerReady(worker_id, message.payload.device))
        elif message.kind is Kind.BEAT:
            self._feed(WorkerBeat(worker_id, message.request_id, message.attempt))
        elif isinstance(message.payload, EvalResult):
            self._feed(WorkerResult(worker_id, message.request_id, message.attempt, message.payload))

    def _stored_result(self, request: EvalRequest) -> EvalResult | None:
        if not request.use_cache or self._state.device is None:
            return None
        try:
            return self._config.store.get(result_key(request, self._state.device))
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

    # --- what goes out ---

    def _feed(self, event: Event) -> None:
        for action in self._state.handle(event, time.monotonic()):
            self._act(action)

    def _act(self, action: Action) -> None:
        if isinstance(action, Reply):
            self._send_client(
                action.client, WireMessage(Kind.RESULT, action.request_id, payload=action.result)
            )
        elif isinstance(action, SendJob):
            job = WireMessage(Kind.JOB, action.job_id, action.attempt, action.request)
            self._send(self._workers, action.worker_id.encode(), job)
        elif isinstance(action, StartWorker):
            self._poller.register(self._processes.start(action.worker_id), zmq.POLLIN)
        elif isinstance(action, KillWorker):
            self._processes.kill(action.worker_id)
        elif isinstance(action, Ready):
            self._announce()
        else:
            self._stop = action

    def _announce(self) -> None:
        device = self._state.device
        if device is not None:
            log.info(
                "ready at %s: %s backend, chip %s, candidates confined by %s",
                self.address,
                device.backend,
                device.chip,
                device.sandbox,
            )
        if self._config.control_fd is not None:
            os.write(self._config.control_fd, f"{self.address}\n".encode())
        self._tell_device()

    def _tell_device(self) -> None:
        if self._info is None:
            return
        for client in self._curious:
            self._send_client(client, WireMessage(Kind.DEVICE, payload=self._info))
        self._curious.clear()

    def _refuse(self, client: bytes, request_id: str, reason: str) -> None:
        complaint = Diagnostic(phase=Phase.REQUEST, message=reason)
        self._send_client(client, WireMessage(Kind.REFUSED, request_id, payload=complaint))

    def _send_client(self, client: bytes, message: WireMessage) -> None:
        if not self._send(self._clients, client, message):
            self._feed(ClientGone(client))

    def _send(self, socket: zmq.Socket[Any], peer: bytes, message: WireMessage) -> bool:
        """Send without waiting; return ``False`` if the peer is gone, does not read, or it cannot be sent."""
        try:
            socket.send_multipart([peer, *encode(message)], zmq.DONTWAIT)
        except (zmq.ZMQError, ValueError) as error:
            log.info("%s to %r was not delivered: %s", message.kind.name, peer, error)
            return False
        return True

    def _close(self) -> None:
        self._processes.close()
        self._close_sockets()

    def _close_sockets(self) -> None:
        self._context.destroy()
        self._config.private_folder.remove()
