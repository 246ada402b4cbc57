"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write a file in one step: after a crash it is the old or the new one, never half of it.

    One process at a time may write a file; its folder is created when missing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f"{path.name}.part")
    with scratch.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
