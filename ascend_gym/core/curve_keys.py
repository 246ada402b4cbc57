"""Key pairs for encrypted connections (CURVE), as files: ``NAME.key`` is public, ``NAME.key_secret`` is not.

A client looks for keys in ``$ASCEND_GYM_KEYS``: ``HOST:PORT.key`` is the public key of the daemon at that
address, ``HOST.key`` that of all other daemons on ``HOST``, and ``client.key_secret`` the client's own.
Without a key for the address, the connection is not encrypted.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ascend_gym.core.errors import MisuseError

if TYPE_CHECKING:
    import zmq

PUBLIC_SUFFIX = ".key"
SECRET_SUFFIX = ".key_secret"


def generate_keys(folder: Path, name: str) -> tuple[Path, Path]:
    """Generate a key pair; return the public and the secret file.

    Raises:
        MisuseError: a file of that name already exists.
    """
    import zmq.auth  # only programs with sockets need it

    public, secret = folder / f"{name}{PUBLIC_SUFFIX}", folder / f"{name}{SECRET_SUFFIX}"
    for path in (public, secret):
        if path.exists():
            raise MisuseError(f"{path} exists already: remove it, or choose another name")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    previous_mask = os.umask(0o077)
    try:
        zmq.auth.create_certificates(folder, name)
    finally:
        os.umask(previous_mask)
    public.chmod(0o644)
    return public, secret


def load_secret_key(path: Path) -> tuple[bytes, bytes]:
    """Return public and secret key (Z85 text) of a secret key file.

    Raises:
        MisuseError: it cannot be read, is not a secret key, or is readable by other users than its owner.
    """
    import zmq.auth

    try:
        mode = path.stat().st_mode
        public, secret = zmq.auth.load_certificate(path)
    except (OSError, ValueError) as error:
        raise MisuseError(
            f"{path} is not a secret key: {error}; make one with 'npu-daemon keygen'"
        ) from error
    if secret is None:
        raise MisuseError(f"{path} holds no secret key: give the file that ends in {SECRET_SUFFIX}")
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise MisuseError(f"{path} may be read by others: chmod 600 {path}")
    return public, secret


def load_public_key(path: Path) -> bytes:
    """Return the public key (Z85 text) of a key file.

    Raises:
        MisuseError: it cannot be read or is not a key.
    """
    import zmq.auth

    try:
        return zmq.auth.load_certificate(path)[0]
    except (OSError, ValueError) as error:
        raise MisuseError(
            f"{path} is not a public key: {error}; make one with 'npu-daemon keygen'"
        ) from error


@dataclass(frozen=True)
class ClientKeys:
    """Keys for a client's encrypted connection, as Z85 text, and the file that names the daemon's."""

    daemon: bytes
    public: bytes
    secret: bytes
    daemon_file: Path

    def guard(self, socket: zmq.Socket[bytes]) -> None:
        """Restrict a socket, before it connects, to the owner of the daemon's key."""
        socket.curve_serverkey = self.daemon
        socket.curve_publickey = self.public
        socket.curve_secretkey = self.secret


def client_keys(address: str, folder: Path) -> ClientKeys | None:
    """Return the keys for the daemon at an address; ``None`` if the connection is not encrypted.

    Raises:
        MisuseError: a key file is unusable, or the client's own is missing.
    """
    scheme, _, rest = address.partition("://")
    host, _, port = rest.rpartition(":")
    host = host.strip("[]")
    if scheme != "tcp" or not host or "/" in rest:
        return None
    for name in (f"{host}:{port}", host):
        daemon = folder / f"{name}{PUBLIC_SUFFIX}"
        if daemon.exists():
            public, secret = load_secret_key(folder / f"client{SECRET_SUFFIX}")
            return ClientKeys(load_public_key(daemon), public, secret, daemon)
    return None
