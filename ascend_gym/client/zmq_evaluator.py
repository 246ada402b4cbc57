"""An evaluator on a daemon, over a ZeroMQ DEALER socket."""

from __future__ import annotations

import os
import time
import uuid
import weakref
from collections.abc import Callable

import zmq
from zmq.utils.monitor import recv_monitor_message

from ascend_gym.client.local_daemon import LocalDaemon
from ascend_gym.core.codec import MAX_PAYLOAD_BYTES, CodecError, Kind, WireMessage, decode, encode
from ascend_gym.core.errors import DaemonUnreachableError, InfrastructureError, MisuseError
from ascend_gym.core.records import DeviceInfo, Diagnostic, EvalRequest, EvalResult, failed_result
from ascend_gym.core.status import Status

CONNECT_TIMEOUT_S = 10.0
READY_TIMEOUT_S = 300.0
_SEND_QUEUE = 10_000
_LINGER_MS = 500
_RECONNECT_MS = 50
_MAX_RECONNECT_MS = 1000
_HEARTBEAT_MS = 2000
_HEARTBEAT_TIMEOUT_MS = 10_000


class ZmqEvaluator:
    """Implements ``Evaluator`` on the daemon at ``address``, for one thread.

    A lost connection is made again by itself, and what has not been answered is then submitted again under
    the same ids, which the daemon recognises.

    Args:
        address: ``tcp://HOST:PORT`` or ``ipc://PATH`` of a daemon.
        connect_timeout_s: how long the daemon may be unreachable before calls raise.
        ready_timeout_s: how long a daemon that is reachable may take to get ready to evaluate.
        private_daemon: the daemon at ``address`` if it is one of this process; its end is noticed at once.
        on_close: called once when this evaluator is closed or collected.

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
    ) -> None:
        self.address = address
        self.dropped_messages = 0
        self._connect_timeout_s = connect_timeout_s
        self._ready_timeout_s = ready_timeout_s
        self._private_daemon = private_daemon
        self._pending: dict[str, EvalRequest] = {}
        self._finished: list[tuple[str, EvalResult]] = []
        self._device: DeviceInfo | None = None
        self._submitted = 0
        self._unreachable_since_s: float | None = time.monotonic()
        self._connections = 0
        self._context = zmq.Context()
        self._socket = _dealer(self._context)
        self._monitor = self._socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
        )
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self._monitor, zmq.POLLIN)
        if private_daemon is not None:
            self._poller.register(private_daemon.ended_fd, zmq.POLLIN)
        self._release = weakref.finalize(self, _release, self._context, os.getpid(), on_close)
        try:
            self._socket.connect(address)
        except zmq.ZMQError as error:
            self.close()
            raise MisuseError(
                f"{address!r} is not the address of a daemon ({error}): use tcp://HOST:PORT or ipc://PATH"
            ) from error

    def submit(self, request: EvalRequest) -> str:
        """Queue a request and return its id.

        Raises:
            InfrastructureError: this evaluator is closed, or the request is too large to be sent.
        """
        self._check_open()
        self._submitted += 1
        request_id = f"{self._submitted}"
        self._send(WireMessage(Kind.SUBMIT, request_id, payload=request))
        self._pending[request_id] = request
        return request_id

    def poll(self, timeout_s: float) -> list[tuple[str, EvalResult]]:
        """Return finished pairs, waiting up to ``timeout_s`` for the first if something is pending.

        Raises:
            DaemonUnreachableError: something is pending and the daemon has been unreachable for too long.
        """
        self._check_open()
        deadline_s = time.monotonic() + timeout_s
        self._receive(0)
        while self._pending and not self._finished:
            self._check_reachable()
            remaining_s = deadline_s - time.monotonic()
            if remaining_s <= 0:
                break
            self._receive(remaining_s)
        finished, self._finished = self._finished, []
        return finished

    def cancel(self, request_id: str) -> None:
        """Stop a request if it has not finished; ``poll`` then returns it with status ``cancelled``."""
        self._check_open()
        if request_id in self._pending:
            self._send(WireMessage(Kind.CANCEL, request_id))

    def describe(self) -> DeviceInfo:
        """Ask the daemon what measures; waits until it is ready.

        Raises:
            DaemonUnreachableError: the daemon cannot be reached, or does not get ready.
        """
        self._check_open()
        self._device = None
        connections = 0
        deadline_s = time.monotonic() + self._ready_timeout_s
        while self._device is None:
            if connections != max(1, self._connections):  # a new connection has not seen the question
                connections = max(1, self._connections)
                self._send(WireMessage(Kind.DESCRIBE))
            self._check_reachable()
            remaining_s = deadline_s - time.monotonic()
            if remaining_s <= 0:
                raise DaemonUnreachableError(
                    f"the daemon at {self.address} answers, but was not ready to evaluate within "
                    f"{self._ready_timeout_s:g} s; see its messages"
                )
            self._receive(remaining_s)
        return self._device

    def close(self) -> None:
        """Withdraw what is pending and disconnect. Further calls raise ``InfrastructureError``."""
        if self._release.alive and self._unreachable_since_s is None:
            for request_id in self._pending:
                self._send(WireMessage(Kind.CANCEL, request_id))
        self._release()

    def _check_open(self) -> None:
        if not self._release.alive:
            raise InfrastructureError("this evaluator is closed; make a new one")

    def _check_reachable(self) -> None:
        if self._unreachable_since_s is None:
            return
        daemon = self._private_daemon
        if daemon is not None and daemon.has_ended():
            raise DaemonUnreachableError(
                f"the private daemon, process {daemon.process_pid}, has ended unexpectedly; close this "
                f"evaluator and connect again for a new one; its last messages:\n{daemon.messages()}"
            )
        if time.monotonic() - self._unreachable_since_s >= self._connect_timeout_s:
            advice = (
                "close this evaluator and connect again"
                if daemon
                else f"start one with 'npu-daemon serve --bind {self.address}', or give no address to use a "
                "private one"
            )
            raise DaemonUnreachableError(
                f"no daemon has answered at {self.address} for {self._connect_timeout_s:g} s; {advice}"
            )

    def _send(self, message: WireMessage) -> None:
        try:
            self._socket.send_multipart(encode(message), zmq.DONTWAIT)
        except (zmq.Again, ValueError) as error:
            raise InfrastructureError(f"{message.kind.name} cannot be sent: {error}") from error

    def _receive(self, timeout_s: float) -> None:
        """Take in what has arrived, waiting up to ``timeout_s`` (or the connect timeout) for anything."""
        wait_s = timeout_s if self._unreachable_since_s is None else min(timeout_s, self._connect_timeout_s)
        ready = dict(self._poller.poll(max(0, int(1000 * wait_s + 0.999))))
        while self._monitor in ready and self._monitor.poll(0):
            self._note_connection(recv_monitor_message(self._monitor)["event"])
        while self._socket.poll(0):  # also what came just before a disconnection that was noted now
            self._take(decode(self._socket.recv_multipart()))

    def _note_connection(self, event: int) -> None:
        if event == zmq.EVENT_DISCONNECTED:
            self._unreachable_since_s = time.monotonic()
            return
        self._unreachable_since_s = None
        self._connections += 1
        if self._connections > 1:
            for request_id, request in self._pending.items():
                self._send(WireMessage(Kind.SUBMIT, request_id, payload=request))

    def _take(self, message: WireMessage | CodecError) -> None:
        if isinstance(message, CodecError):
            raise InfrastructureError(f"{self.address} does not speak our protocol: {message.reason}")
        if isinstance(message.payload, DeviceInfo):
            self._device = message.payload
        elif isinstance(message.payload, EvalResult):
            self._finish(message.request_id, message.payload)
        elif isinstance(message.payload, Diagnostic):
            self._take_refusal(message.request_id, message.payload)

    def _take_refusal(self, request_id: str, complaint: Diagnostic) -> None:
        request = self._pending.get(request_id)
        if request is None:
            raise InfrastructureError(f"the daemon at {self.address} refuses: {complaint.message}")
        self._finish(request_id, failed_result(request, Status.INVALID_REQUEST, complaint))

    def _finish(self, request_id: str, result: EvalResult) -> None:
        request = self._pending.get(request_id)
        if request is None or request.digest != result.request_digest:
            self.dropped_messages += 1
            return
        del self._pending[request_id]
        self._finished.append((request_id, result))


def _dealer(context: zmq.Context[zmq.Socket[bytes]]) -> zmq.Socket[bytes]:
    socket = context.socket(zmq.DEALER)
    for option, value in (
        (zmq.LINGER, _LINGER_MS),
        (zmq.RECONNECT_IVL, _RECONNECT_MS),
        (zmq.RECONNECT_IVL_MAX, _MAX_RECONNECT_MS),
        (zmq.HEARTBEAT_IVL, _HEARTBEAT_MS),
        (zmq.HEARTBEAT_TIMEOUT, _HEARTBEAT_TIMEOUT_MS),
        (zmq.SNDHWM, _SEND_QUEUE),
        (zmq.MAXMSGSIZE, MAX_PAYLOAD_BYTES),
    ):
        socket.setsockopt(option, value)
    socket.setsockopt(zmq.IDENTITY, uuid.uuid4().bytes)
    return socket


def _release(
    context: zmq.Context[zmq.Socket[bytes]], owner_pid: int, on_close: Callable[[], None] | None
) -> None:
    if os.getpid() != owner_pid:  # a forked child must not touch its parent's sockets
        return
    context.destroy()
    if on_close is not None:
        on_close()
