"""Access control of a daemon: bind addresses, CURVE keys, and the list of allowed clients.

Keys are certificate files in the format of libzmq's tools. Each client is a tenant, named by its public key
file in the folder of allowed clients. The folder is read at each handshake, and compared twice a second with
who is connected: clients can be admitted and excluded while the daemon runs.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from dataclasses import dataclass
from pathlib import Path

import zmq
import zmq.auth

from ascend_gym.core.curve_keys import load_secret_key
from ascend_gym.core.errors import MisuseError

_ZAP_ADDRESS = "inproc://zeromq.zap.01"
_ZAP_VERSION = b"1.0"
_ZAP_FRAMES = 7  # version, request id, domain, address, identity, mechanism, public key
_KEY_BYTES = 32
_TENANT = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")

log = logging.getLogger("npu_daemon")


def is_local(address: str) -> bool:
    """Whether only this host can reach an address.

    Raises:
        MisuseError: it is neither ``tcp://HOST:PORT`` nor ``ipc://PATH``.
    """
    scheme, separator, rest = address.partition("://")
    if separator and scheme == "ipc" and rest:
        return True
    host, colon, _ = rest.rpartition(":")
    if scheme != "tcp" or not colon or not host:
        raise MisuseError(f"cannot bind {address!r}: use tcp://127.0.0.1:PORT (or :*) or ipc:///PATH")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class CurvePolicy:
    """Encrypted connections, from known clients only.

    Attributes:
        secret_key_file: the daemon's secret key, from ``npu-daemon keygen``.
        clients_folder: folder of the allowed clients' public keys, ``TENANT.key``.
        operators: tenants that may drain and resize the daemon.
    """

    secret_key_file: Path
    clients_folder: Path
    operators: tuple[str, ...] = ()

    def key_of(self, tenant: str) -> bytes | None:
        """Return the public key of a tenant, or ``None``."""
        path = self.clients_folder / f"{tenant}.key"
        return _public_key(path) if path.exists() else None

    def tenant_of(self, public_key: bytes) -> str | None:
        """Return the tenant with this public key (Z85 text), or ``None``."""
        for path in sorted(self.clients_folder.glob("*.key")):
            if _TENANT.match(path.stem) and _public_key(path) == public_key:
                return path.stem
        return None


def _public_key(path: Path) -> bytes | None:
    try:
        return zmq.auth.load_certificate(path)[0]
    except (OSError, ValueError) as error:
        log.warning("%s is not a public key and lets nobody in: %s", path, error)
        return None


def check_bind_address(address: str, policy: CurvePolicy | None = None) -> None:
    """Refuse to listen where strangers could send code.

    Raises:
        MisuseError: the address is invalid, or other hosts could reach it and ``policy`` is ``None``.
    """
    if not is_local(address) and policy is None:
        raise MisuseError(
            f"cannot bind {address!r}: a daemon runs the code it is sent, so without keys it listens on "
            "loopback (tcp://127.0.0.1:PORT) or ipc only; give --secret-key and --allowed-clients (see "
            "npu-daemon keygen), or use an ssh tunnel (ssh -L 5710:127.0.0.1:5710 HOST)"
        )


class Gatekeeper:
    """Answers libzmq's authentication requests (ZAP, RFC 27) from the broker's own loop.

    Args:
        context: context of the guarded sockets.
        policy: who may connect.

    Raises:
        MisuseError: the secret key cannot be read, other users can read it, or the folder of clients is
            missing.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], policy: CurvePolicy) -> None:
        if not policy.clients_folder.is_dir():
            raise MisuseError(
                f"there is no folder {policy.clients_folder} with public keys of allowed clients"
            )
        self._policy = policy
        self._admitted: dict[str, bytes] = {}
        self._expelled: dict[str, int] = {}
        self._public_key, self._secret_key = load_secret_key(policy.secret_key_file)
        self.socket = context.socket(zmq.REP)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.bind(_ZAP_ADDRESS)

    def guard(self, socket: zmq.Socket[bytes]) -> None:
        """Restrict a socket, before it is bound, to clients that the policy allows."""
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.CURVE_PUBLICKEY, self._public_key)
        socket.setsockopt(zmq.CURVE_SECRETKEY, self._secret_key)
        socket.setsockopt(zmq.ZAP_DOMAIN, b"ascend-gym")

    def expel(self, tenant: str) -> None:
        """Admit a tenant no more until its key file is written again, or the daemon is started again."""
        self._expelled[tenant] = self._written_ns(tenant)

    def admits(self, tenant: str) -> bool:
        """Whether a tenant is not expelled."""
        if tenant in self._expelled and self._expelled[tenant] != self._written_ns(tenant):
            del self._expelled[tenant]
        return tenant not in self._expelled

    def lapsed(self) -> list[str]:
        """Return tenants that were admitted with a key that has been removed or replaced since, once each."""
        gone = [name for name, key in self._admitted.items() if self._policy.key_of(name) != key]
        for name in gone:
            del self._admitted[name]
        return gone

    def _written_ns(self, tenant: str) -> int:
        try:
            return (self._policy.clients_folder / f"{tenant}.key").stat().st_mtime_ns
        except OSError:
            return 0

    def answer(self) -> None:
        """Answer one authentication request."""
        frames = self.socket.recv_multipart()
        self.socket.send_multipart(self._verdict(frames))

    def _verdict(self, frames: list[bytes]) -> list[bytes]:
        request_id = frames[1] if len(frames) > 1 else b""
        known = len(frames) == _ZAP_FRAMES and frames[0] == _ZAP_VERSION and frames[5] == b"CURVE"
        tenant = None
        if known and len(frames[6]) == _KEY_BYTES:
            key = zmq.utils.z85.encode(frames[6])
            tenant = self._policy.tenant_of(key)
            if tenant is not None and self.admits(tenant):
                self._admitted[tenant] = key
            else:
                tenant = None
        if tenant is None:
            address = frames[3].decode(errors="replace") if len(frames) > 3 else "?"
            log.warning("a client from %s was refused: its key is not allowed", address)
            return [_ZAP_VERSION, request_id, b"400", b"key not allowed", b"", b""]
        return [_ZAP_VERSION, request_id, b"200", b"OK", tenant.encode(), b""]
