"""A connection to one daemon over a DEALER socket, with monitoring of the other end."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import zmq
from zmq.utils.monitor import recv_monitor_message

from ascend_gym.client.local_daemon import LocalDaemon
from ascend_gym.core.codec import MAX_PAYLOAD_BYTES, CodecError, WireMessage, decode, encode
from ascend_gym.core.config import keys_folder
from ascend_gym.core.curve_keys import client_keys
from ascend_gym.core.errors import DaemonUnreachableError, InfrastructureError, MisuseError
from ascend_gym.core.zmq_frames import receive_frames, send_frames

FIRST_CONTACT_S = 10.0  # nobody waits long for an address that was mistyped
RESTART_S = 60.0  # of a daemon that was killed, by whatever looks after it
_SEND_QUEUE = 10_000
_LINGER_MS = 500
_RECONNECT_MS = 50
_MAX_RECONNECT_MS = 1000
_HEARTBEAT_MS = 2000
_HEARTBEAT_TIMEOUT_MS = 10_000
_REFUSED = zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH
_HUNG_UP = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL  # a guarded daemon does so to clients with unknown keys


class DaemonLink:
    """Sends and receives messages for one thread, and reconnects automatically.

    Args:
        address: ``tcp://HOST:PORT`` or ``ipc://PATH``.
        connect_timeout_s: how long the daemon may be unreachable before ``check_reachable`` raises; ``None``:
            ``FIRST_CONTACT_S``, and ``RESTART_S`` once it has answered.
        private_daemon: the daemon at ``address`` if this process owns it, so that its end is detected at
            once.
        on_close: called once when this link is closed or garbage collected.

    Attributes:
        connect_timeout_s: as given.
        connections: how often a connection was established.
        heard_s: monotonic time of the last message, or since when the first one is expected.

    Raises:
        MisuseError: ``address`` is invalid, or the key for its host is unusable.
    """

    def __init__(
        self,
        address: str,
        connect_timeout_s: float | None,
        private_daemon: LocalDaemon | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self.address = address
        self.connections = 0
        self.heard_s = time.monotonic()
        self.connect_timeout_s, self._has_answered = connect_timeout_s, False
        self._private_daemon = private_daemon
        self._connected_s: float | None = None
        self._spoken_to = False
        self._unanswered_since_s = time.monotonic()
        self._refused = False
        self._keys = keys = client_keys(address, keys_folder())
        self._context = zmq.Context()
        self._socket = _dealer(self._context)
        self._refusals = _REFUSED | (_HUNG_UP if keys is not None else 0)
        if keys is not None:
            keys.guard(self._socket)
        self._monitor = self._socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED | self._refusals
        )
        sockets = (self._monitor, self._socket)
        self._release = weakref.finalize(self, _release, self._context, sockets, os.getpid(), on_close)
        try:
            self._socket.connect(address)
        except zmq.ZMQError as error:
            self.close()
            raise MisuseError(
                f"{address!r} is not the address of a daemon ({error}): use tcp://HOST:PORT or ipc://PATH"
            ) from error

    @property
    def patience_s(self) -> float:
        """How long the daemon may be unreachable."""
        if self.connect_timeout_s is not None:
            return self.connect_timeout_s
        return RESTART_S if self._has_answered else FIRST_CONTACT_S

    @property
    def sources(self) -> list[zmq.Socket[bytes] | int]:
        """Sockets and descriptors that become readable when something happens on this link."""
        daemon = [] if self._private_daemon is None else [self._private_daemon.ended_fd]
        return [self._socket, self._monitor, *daemon]

    @property
    def is_open(self) -> bool:
        """Whether ``close`` has not been called."""
        return self._release.alive

    @property
    def is_connected(self) -> bool:
        """Whether a daemon is at the other end, as far as is known."""
        return self._connected_s is not None

    def send(self, message: WireMessage) -> None:
        """Send a message, or queue it until there is a connection.

        Raises:
            MisuseError: the message is too large.
            InfrastructureError: the queue is full.
        """
        try:
            frames = encode(message)
        except ValueError as error:
            raise MisuseError(f"{message.kind.name} cannot be sent: {error}; send less at a time") from error
        try:
            send_frames(self._socket, frames)
        except zmq.Again as error:
            raise InfrastructureError(
                f"{message.kind.name} cannot be sent: {_SEND_QUEUE} messages wait for {self.address} already"
            ) from error

    def received(self) -> list[WireMessage]:
        """Process connection events and return the messages that have arrived.

        Raises:
            InfrastructureError: the other end does not speak our protocol.
        """
        with suppress(zmq.Again):
            while True:
                self._note_connection(recv_monitor_message(self._monitor, zmq.DONTWAIT)["event"])
        messages = []
        for frames in self._arrived():  # also what came just before a disconnection that was noted now
            message = decode(frames)
            if isinstance(message, CodecError):
                raise InfrastructureError(
                    f"{self.address} does not speak our protocol: {message.reason}; is it a daemon, of "
                    "the same release of ascend-gym?"
                )
            self.heard_s = time.monotonic()
            self._spoken_to = self._has_answered = True
            if not self.is_connected:  # its connection was lost a moment ago
                self._unanswered_since_s = self.heard_s
            messages.append(message)
        return messages

    def _arrived(self) -> Iterator[list[bytes]]:
        with suppress(zmq.Again):
            while True:
                yield [frame.bytes for frame in receive_frames(self._socket)]

    def check_reachable(self) -> None:
        """Raise if no daemon has been at the other end for too long.

        Raises:
            DaemonUnreachableError: as above.
        """
        if self.is_connected:
            return
        daemon = self._private_daemon
        if daemon is not None and daemon.has_ended():
            raise DaemonUnreachableError(
                f"the private daemon, process {daemon.process_pid}, has ended unexpectedly; close this "
                f"evaluator and connect again for a new one; its last messages:\n{daemon.messages()}"
            )
        if time.monotonic() - self._unanswered_since_s < self.patience_s:
            return
        if self._refused:
            raise DaemonUnreachableError(
                f"the daemon at {self.address} refuses the connection: {self._advice_on_keys()}"
            )
        raise self.no_answer(self.patience_s)

    def _advice_on_keys(self) -> str:
        folder = keys_folder()
        if self._keys is None:
            return (
                "it wants a key that it knows; put its public key as HOST.key and yours as client.key_secret "
                f"into {folder} (see npu-daemon keygen)"
            )
        port = self.address.rpartition(":")[2]
        return (
            f"{self._keys.daemon_file} was taken for its key. If this daemon (port {port}) has no keys, the "
            "file belongs to another one: name it HOST:PORT.key after that. If it has keys, it does not know "
            f"yours: have {folder / 'client.key'} copied to its folder of allowed clients"
        )

    def no_answer(self, waited_s: float) -> DaemonUnreachableError:
        """Return the error for a daemon that has not answered for ``waited_s``, with advice."""
        advice = (
            "close this evaluator and connect again"
            if self._private_daemon
            else f"start one with 'npu-daemon serve --bind {self.address}', or give no address to use a "
            "private one"
        )
        return DaemonUnreachableError(
            f"no daemon has answered at {self.address} for {waited_s:g} s; {advice}"
        )

    def expect_answers(self) -> None:
        """Measure the daemon's silence from now on."""
        self.heard_s = time.monotonic()

    def close(self) -> None:
        """Disconnect. May be called more than once."""
        if self.is_open and not self.is_connected:
            self._socket.setsockopt(zmq.LINGER, 0)  # nobody would get what waits to be sent
        self._release()

    def _note_connection(self, event: int) -> None:
        if event & self._refusals:
            self._refused = True
            return
        if event == zmq.EVENT_DISCONNECTED:
            self._note_loss(time.monotonic())
            return
        self._refused = self._spoken_to = False
        self._connected_s = self.heard_s = time.monotonic()
        self.connections += 1

    def _note_loss(self, now_s: float) -> None:
        """Start measuring the time without an answer, unless it is running already.

        A peer that accepts connections and closes them again does not count as a daemon: it may be a tunnel
        with a dead end or a load balancer.
        """
        if self._connected_s is not None:
            if self._spoken_to or now_s - self._connected_s >= self.patience_s:
                self._unanswered_since_s = now_s
            self._connected_s = None


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
    return socket


def _release(
    context: zmq.Context[zmq.Socket[bytes]],
    sockets: Sequence[zmq.Socket[bytes]],
    owner_pid: int,
    on_close: Callable[[], None] | None,
) -> None:
    """Close all sockets: a context holds them weakly, and would wait for forgotten ones on exit."""
    if os.getpid() != owner_pid:  # a forked child must not touch its parent's sockets
        return
    for socket in sockets:
        socket.close()
    context.destroy()
    if on_close is not None:
        on_close()
