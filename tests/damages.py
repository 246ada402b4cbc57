"""What a disk, a power failure or somebody's hand does to a file."""

from __future__ import annotations

import os
from pathlib import Path


def empty(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"")


def truncate(path: Path) -> None:
    path.chmod(0o644)
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path) -> None:
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    if content:
        content[len(content) // 2] ^= 0x55
    path.write_bytes(content)


def remove(path: Path) -> None:
    path.unlink()


DAMAGES = (empty, truncate, flip, remove)
