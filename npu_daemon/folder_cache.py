"""Folders of a cache that are removed, longest unused first, when they take too much room."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

IN_USE_S = 600.0
"""What was used within this time is not removed: somebody may be working with it."""


def note_use(entry: Path) -> None:
    """Note that an entry is used, unless it has just been removed."""
    try:
        os.utime(entry)
    except FileNotFoundError:
        return


def evict(entries: Iterable[Path], limit_bytes: int, keep: Path) -> None:
    """Remove the longest unused of ``entries`` until the others take at most ``limit_bytes``.

    Args:
        entries: folders; their modification time says when they were used.
        limit_bytes: room for all of them.
        keep: one of them that stays in any case.
    """
    by_use = sorted((_used_s(path), path) for path in entries)
    sizes = {path: _size_bytes(path) for _, path in by_use}
    total_bytes = sum(sizes.values())
    for used_s, path in by_use:
        if total_bytes <= limit_bytes or time.time() - used_s < IN_USE_S:
            return
        if path != keep:
            shutil.rmtree(path, ignore_errors=True)
            total_bytes -= sizes[path]


def _used_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another process removes entries too
        return 0.0


def _size_bytes(folder: Path) -> int:
    """Return the size of what is in ``folder``, but for what another process removes or renames meanwhile."""
    total_bytes = 0
    for parent, folders, files in os.walk(folder):  # goes past folders that have vanished
        for name in (*folders, *files):
            try:
                total_bytes += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                continue
    return total_bytes
