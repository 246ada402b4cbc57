"""Folders for sockets and scratch files that only this user can access.

Every process that uses such a folder locks its marker file. The kernel drops the locks of a killed
process, so a folder with an unlocked marker is abandoned and may be removed.
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
    """A folder with mode 0700 that this process uses, with a path short enough for sockets.

    Args:
        path: private folder of another process, to share; ``None`` creates a new one.

    Raises:
        OSError: it cannot be created, or does not exist.
    """

    def __init__(self, path: Path | None = None) -> None:
        if path is None:
            path, self._lock_fd = _make()
        else:
            self._lock_fd = os.open(path / _MARKER, os.O_RDONLY)
            fcntl.flock(self._lock_fd, fcntl.LOCK_SH)
        self.path = path

    def remove(self) -> None:
        """Remove the folder, even if others use it. Call only once."""
        with contextlib.suppress(OSError):
            remove_tree(self.path)
        self.leave()

    def leave(self) -> None:
        """Stop using the folder without removing it, as a forked child does with the folder of its parent."""
        os.close(self._lock_fd)


def remove_abandoned_folders() -> None:
    """Remove this user's private folders whose processes were killed."""
    for path in _parent().glob(f"{_PREFIX}*"):
        try:
            _remove_unless_used(path)
        except OSError:  # gone meanwhile, without a marker, in use, or not ours to open
            continue


def _parent() -> Path:
    folder = tempfile.gettempdir()
    return Path(folder if len(folder) <= _MAX_FOLDER_CHARS else "/tmp")


def _make() -> tuple[Path, int]:
    """Create a folder whose marker is already locked when the folder gets its final name."""
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
