"""Administrative requests to a daemon: status, drain, resize, expel."""

from __future__ import annotations

import zmq

from ascend_gym.core.codec import CodecError, Kind, WireMessage, decode, encode
from ascend_gym.core.config import keys_folder
from ascend_gym.core.curve_keys import client_keys
from ascend_gym.core.errors import DaemonUnreachableError, InfrastructureError, MisuseError
from ascend_gym.core.records import DaemonStatus, Diagnostic, TenantName, WorkerCount


def ask_daemon(
    address: str, kind: Kind, payload: WorkerCount | TenantName | None = None, timeout_s: float = 10.0
) -> DaemonStatus:
    """Send an administrative request and return the daemon's status after it.

    Args:
        address: address of the daemon.
        kind: ``STATUS``, ``DRAIN``, ``RESIZE`` or ``EXPEL``.
        payload: for ``RESIZE``, the number of workers to keep; for ``EXPEL``, the tenant.
        timeout_s: how long to wait for the answer.

    Raises:
        MisuseError: the address is invalid, or the daemon refuses.
        DaemonUnreachableError: no answer came.
        InfrastructureError: the answer does not follow our protocol.
    """
    keys = client_keys(address, keys_folder())
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        if keys is not None:
            keys.guard(socket)
        try:
            socket.connect(address)
        except zmq.ZMQError as error:
            raise MisuseError(f"{address!r} is not the address of a daemon ({error})") from error
        socket.send_multipart(encode(WireMessage(kind, payload=payload)))
        if not socket.poll(int(1000 * timeout_s)):
            raise DaemonUnreachableError(
                f"no daemon has answered at {address} for {timeout_s:g} s: is one running there (npu-daemon "
                f"serve --bind {address}), and if it wants a key, is its public key in {keys_folder()} as "
                "HOST.key, and yours in its folder of allowed clients?"
            )
        return _status_in(address, decode(socket.recv_multipart()))


def _status_in(address: str, answer: WireMessage | CodecError) -> DaemonStatus:
    if isinstance(answer, WireMessage) and isinstance(answer.payload, DaemonStatus):
        return answer.payload
    if isinstance(answer, WireMessage) and isinstance(answer.payload, Diagnostic):
        raise MisuseError(f"the daemon at {address} refuses: {answer.payload.message}")
    reason = answer.reason if isinstance(answer, CodecError) else f"it answered with {answer.kind.name}"
    raise InfrastructureError(
        f"{address} does not speak our protocol: {reason}; is it a daemon, of the same release of ascend-gym?"
    )
