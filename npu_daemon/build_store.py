"""Build folders, stored by a digest of all their inputs."""

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
    """Builds equal contents once: workers that need the same build share one.

    Args:
        root: folder of the builds, with a subfolder per kind; may be shared by processes.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def obtain(
        self, kind: str, key: str, make: Callable[[Path], Failure | None]
    ) -> tuple[Path, float] | Failure:
        """Return the folder of a build and the seconds it took.

        Args:
            kind: subfolder.
            key: digest of all inputs of the build.
            make: creates the build in a given folder; nothing is kept of a failed one.
        """
        final = self._root / kind / key[:2] / key
        if final.exists():
            note_use(final)
            return final, 0.0
        final.parent.mkdir(parents=True, exist_ok=True)
        # Lock files are never removed, so there are few: builds whose digests share a prefix share a lock.
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
