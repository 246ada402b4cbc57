"""The secret from which values of second looks are derived; created once per data folder, and never shown."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

from ascend_gym.core.errors import InfrastructureError

SECRET_NAME = "second_look.secret"
_SECRET_BYTES = 32


def obtain_secret(folder: Path) -> bytes:
    """Return the secret of a folder, creating it with mode 600 if necessary; safe for concurrent processes.

    Raises:
        InfrastructureError: other users can read it, or it is not a valid secret.
    """
    path = folder / SECRET_NAME
    if not path.exists():
        _make(path)
    with path.open("rb") as file:
        mode, secret = os.fstat(file.fileno()).st_mode, file.read(_SECRET_BYTES + 1)
    if mode & 0o077 or len(secret) != _SECRET_BYTES:
        raise InfrastructureError(
            f"{path}: expected {_SECRET_BYTES} bytes that only their owner can read; "
            "remove it to have it made anew"
        )
    return secret


def _make(path: Path) -> None:
    """Write a new secret, unless another process was first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(prefix=f"{SECRET_NAME}-", dir=path.parent)  # for its owner only
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(_SECRET_BYTES))
        os.link(scratch, path)
    except FileExistsError:
        return
    finally:
        os.unlink(scratch)
