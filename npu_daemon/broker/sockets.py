"""The broker's sockets, bound with limits and non-blocking, and its messages as they travel."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import zmq

from ascend_gym.core.codec import MAX_PAYLOAD_BYTES, CodecError, Kind, WireMessage, decode, encode
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.records import DaemonInfo, DeviceGrant, Diagnostic, EvalResult, Phase
from ascend_gym.core.zmq_frames import receive_frames, send_frames
from npu_daemon.broker.events import (
    LOCAL_TENANT,
    Busy,
    DeviceFreed,
    DeviceWanted,
    Event,
    GrantDevice,
    Ping,
    Reply,
    SendJob,
    WorkerBeat,
    WorkerReady,
    WorkerResult,
)
from npu_daemon.security import Gatekeeper

_SEND_QUEUE = 20_000
_RECEIVE_QUEUE = 100  # messages of one peer; they may be large, and the peer keeps the others
_MESSAGES_PER_TURN = 16  # so that a client that sends many does not keep workers waiting
_BYTES_PER_TURN = 2**20  # nor one that sends long ones: a turn ends with the message that exceeds it
_HANDSHAKE_MS = 10_000
_OWN_NAME_BYTES = 5
OF_TENANT = b"\0"
log = logging.getLogger("npu_daemon")


def worker_event(worker_id: str, message: WireMessage) -> Event | None:
    """Return the event of a worker's message; ``None`` if workers do not send such messages."""
    lease = (worker_id, message.request_id, message.attempt)
    if isinstance(message.payload, DaemonInfo):
        return WorkerReady(worker_id, message.payload)
    if isinstance(message.payload, EvalResult):
        return WorkerResult(*lease, message.payload)
    if message.kind is Kind.BEAT:
        return WorkerBeat(*lease)
    if message.kind is Kind.WANT:
        return DeviceWanted(*lease)
    if message.kind is Kind.FREED:
        return DeviceFreed(*lease)
    return None


def client_message(action: Reply | Busy | Ping) -> WireMessage:
    """Return the message of an action for a client."""
    if isinstance(action, Reply):
        return WireMessage(Kind.RESULT, action.request_id, payload=action.result)
    if isinstance(action, Busy):
        complaint = Diagnostic(phase=Phase.SERVICE, message=action.reason)
        return WireMessage(Kind.BUSY, action.request_id, payload=complaint)
    return WireMessage(Kind.BEAT)


def worker_message(action: SendJob | GrantDevice) -> WireMessage:
    """Return the message of an action for a worker."""
    if isinstance(action, SendJob):
        return WireMessage(Kind.JOB, action.job_id, action.attempt, action.request)
    grant = DeviceGrant(device=action.device)
    return WireMessage(Kind.GRANT, action.job_id, action.attempt, grant)


def bind_router(
    context: zmq.Context[zmq.Socket[bytes]],
    address: str,
    linger_ms: int,
    gatekeeper: Gatekeeper | None = None,
) -> tuple[zmq.Socket[bytes], str]:
    """Return a bound ROUTER socket and its address with the actual port.

    Args:
        context: ZeroMQ context.
        address: ZeroMQ endpoint; port ``*`` picks a free one.
        linger_ms: how long closing waits for unsent messages.
        gatekeeper: authenticates clients; without one, anyone may connect.

    Raises:
        InfrastructureError: the address cannot be bound.
    """
    socket = context.socket(zmq.ROUTER)
    for option, value in (
        (zmq.ROUTER_MANDATORY, 1),
        (zmq.MAXMSGSIZE, MAX_PAYLOAD_BYTES),
        (zmq.HANDSHAKE_IVL, _HANDSHAKE_MS),
        (zmq.SNDHWM, _SEND_QUEUE),
        (zmq.RCVHWM, _RECEIVE_QUEUE),
        (zmq.LINGER, linger_ms),
    ):
        socket.setsockopt(option, value)
    if gatekeeper is not None:
        gatekeeper.guard(socket)
    previous_mask = os.umask(0o077)
    try:
        socket.bind(address)
    except zmq.ZMQError as error:
        socket.close(0)
        raise InfrastructureError(f"cannot bind {address}: {error}") from error
    finally:
        os.umask(previous_mask)
    return socket, socket.getsockopt_string(zmq.LAST_ENDPOINT)


@dataclass(frozen=True)
class Arrival:
    """A message with its sender.

    Attributes:
        peer: name of the connection.
        tenant: whose key it was made with.
        message: what was sent.
        fd: descriptor of the connection, where it is known.
    """

    peer: bytes
    tenant: str
    message: WireMessage | CodecError
    fd: int | None = None

    @property
    def named_by_us(self) -> bool:
        """Whether this socket named the connection: a zero and four bytes, the first ones of a random start.

        Clients of libzmq cannot claim such a name, and a name that is in use is not given away.
        """
        return len(self.peer) == _OWN_NAME_BYTES and self.peer[:1] == b"\0"

    @property
    def client(self) -> bytes:
        """Who asks: the client's own name, which outlives its connection, below that of its tenant."""
        name = self.message.request_id.rpartition(".")[0].encode() or self.peer
        return self.tenant.encode() + OF_TENANT + name


def arrived(socket: zmq.Socket[bytes], *, guarded: bool = False) -> Iterator[Arrival]:
    """Yield received messages, a bounded number at a time.

    Frames that are too long are dropped, and so are messages to a guarded socket without an allowed key.
    """
    read_bytes = 0
    for _ in range(_MESSAGES_PER_TURN):
        if read_bytes > _BYTES_PER_TURN:
            return
        try:
            received = receive_frames(socket)
        except zmq.Again:
            return
        tenant = str(received[-1].get("User-Id")) if guarded else LOCAL_TENANT
        fd = int(received[-1].get(zmq.SRCFD)) if guarded else None
        peer, *frames = [frame.bytes for frame in received]
        read_bytes += sum(map(len, frames))
        yield Arrival(peer, tenant, decode(frames), fd)


def send_to(socket: zmq.Socket[Any], peer: bytes, message: WireMessage) -> bool:
    """Send without blocking; return ``False`` if the message cannot be sent or the peer does not read."""
    try:
        send_frames(socket, [peer, *encode(message)])
    except (zmq.ZMQError, ValueError) as error:
        log.info("%s was not delivered: %s", message.kind.name, error)
        return False
    return True
