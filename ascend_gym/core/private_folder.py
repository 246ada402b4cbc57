"""Folders for sockets and scratch files that only this user can reach.

A marker file in the folder is locked by every process that uses it. The kernel drops the locks of a process
that is killed, so a folder whose marker nobody holds has been left behind and may be removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from pathlib import Path

from ascend_gym.core.remove_tree import remove_tree

_PREFIX = "ascend-gym-"
_MARKER = "in-use"
_MAX_FOLDER_CHARS = 80  # the path of a Unix socket has at most 107 bytes


class PrivateFolder:
    """A folder with mode 0700 and a path short enough for sockets, which this process uses.

    Args:
        path: a private folder that another process uses and shares; ``None`` makes a new one.

    Raises:
        OSError: it cannot be made, or there is no such folder.
    """

    def __init__(self, path: Path | None = None) -> None:
        if path is None:
            path, self._lock_fd = _make()
        else:
            self._lock_fd = os.open(path / _MARKER, os.O_RDONLY)
            fcntl.flock(self._lock_fd, fcntl.LOCK_SH)
        self.path = path

    def remove(self) -> None:
        """Remove the folder, also while others use it. For once only."""
        with contextlib.suppress(OSError):
            remove_tree(self.path)
        self.leave()

    def leave(self) -> None:
        """Use it no longer, but let it be; a forked child does so with the folder of its parent."""
        os.close(self._lock_fd)


def remove_abandoned_folders() -> None:
    """Remove the private folders of this user that killed processes have left behind."""
    for path in _parent().glob(f"{_PREFIX}*"):
        try:
            _remove_unless_used(path)
        except OSError:  # gone meanwhile, without a marker, in use, or not ours to open
            continue


def _parent() -> Path:
    folder = tempfile.gettempdir()
    return Path(folder if len(folder) <= _MAX_FOLDER_CHARS else "/tmp")


def _make() -> tuple[Path, int]:
    """Make a folder whose marker is locked from the moment on when it has its name."""
    path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_parent()))
    unnamed = path / "new"
    lock_fd = os.open(unnamed, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(lock_fd, fcntl.LOCK_SH)
    unnamed.rename(path / _MARKER)
    return path, lock_fd


def _remove_unless_used(path: Path) -> None:
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    lock_fd = os.open(path / _MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_tree(path)
    finally:
        os.close(lock_fd)
