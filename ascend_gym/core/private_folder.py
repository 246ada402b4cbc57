"""Folders for sockets and scratch files that only this user can reach."""

from __future__ import annotations

import tempfile
from pathlib import Path

_MAX_FOLDER_CHARS = 80  # the path of a Unix socket has at most 107 bytes


def make_private_folder() -> Path:
    """Return a new empty folder with mode 0700 and a path short enough for sockets; the caller removes it."""
    parent = tempfile.gettempdir()
    return Path(
        tempfile.mkdtemp(prefix="ascend-gym-", dir=parent if len(parent) <= _MAX_FOLDER_CHARS else "/tmp")
    )
