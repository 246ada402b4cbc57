"""Folders of builds, found again by a digest of everything that changes them."""

from __future__ import annotations

import fcntl
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ascend_gym.core.protocols import Failure
from ascend_gym.core.remove_tree import remove_tree
from npu_daemon.cache_folder import note_use

_LOCK_CHARS = 4


class BuildStore:
    """Builds once per content: two workers that want the same build share one.

    Args:
        root: holds the builds, in a folder for each kind; may be shared by processes.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def obtain(
        self, kind: str, key: str, make: Callable[[Path], Failure | None]
    ) -> tuple[Path, float] | Failure:
        """Return the folder of a build and the seconds it took; failed builds leave nothing behind."""
        final = self._root / kind / key[:2] / key
        if final.exists():
            note_use(final)
            return final, 0.0
        final.parent.mkdir(parents=True, exist_ok=True)
        # locks stay for ever, so there are few: builds of equal beginnings wait for each other
        with open(final.parent / f"{key[:_LOCK_CHARS]}.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if final.exists():
                return final, 0.0
            started_s = time.perf_counter()
            building = Path(tempfile.mkdtemp(dir=final.parent, prefix="building-"))
            try:
                failure = make(building)
                seconds = time.perf_counter() - started_s
                if failure is not None:
                    return Failure(failure.status, failure.diagnostics, seconds)
                building.rename(final)
            finally:
                remove_tree(building)  # gone already after a rename
        return final, seconds
