"""Contents, limit and clearing of a cache folder, and where builds are kept in it.

Everything that is listed here can be recreated. Other files (journals of accepted jobs, the index of imported
operators) are kept.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Failure
from ascend_gym.core.remove_tree import remove_tree
from npu_daemon.own_files import OWN_FILES

DEFAULT_LIMIT_GIB = 4.0
DEFAULT_LIMIT_BYTES = int(DEFAULT_LIMIT_GIB * 2**30)
RESULTS_SHARE = 4
"""Results take at most the limit divided by this number."""

IN_USE_S = 600.0
"""Entries used within this time are not removed, because they may still be in use."""

INPUTS_FOLDER = "case_data"
BUILDS_FOLDER = "builds"
CANN_FOLDER = "cann"
RESULTS_NAME = "results.sqlite"
_USERS_NAME = "in-use"
LOCK_SUFFIX = ".lock"
LOCK_CHARS = 4
"""Entries whose names begin alike share a lock, so that there are few: locks are never removed."""


@dataclass(frozen=True)
class _Part:
    """A part of the cache.

    Attributes:
        name: name for users.
        entries: glob pattern of entries, which are created and removed as a whole.
        limited: whether entries are removed when the cache exceeds its limit.
    """

    name: str
    entries: str
    limited: bool = True


_PARTS = (
    _Part("inputs", f"{INPUTS_FOLDER}/*"),
    _Part("builds", f"{BUILDS_FOLDER}/*/*/*"),
    _Part("builds for NPUs", f"{CANN_FOLDER}/opp/*/*"),
    _Part("results", f"{RESULTS_NAME}*", limited=False),
    _Part("simulator", "toolchain/*", limited=False),
    _Part("programs of examples", "examples/*/*", limited=False),
    _Part("imported examples", "imported/*", limited=False),
)


@dataclass(frozen=True)
class PartSize:
    """Size of a part of the cache."""

    name: str
    entries: int
    size_bytes: int
    limited: bool


def make_room(cache_dir: Path, limit_bytes: int) -> None:
    """Remove the least recently used inputs and builds until they and the results fit ``limit_bytes``."""
    entries = [entry for part in _PARTS if part.limited for entry in _entries(cache_dir, part)]
    sizes = {entry: _size_bytes(entry) for entry in entries}
    total_bytes = sum(sizes.values()) + sum(map(_size_bytes, cache_dir.glob(f"{RESULTS_NAME}*")))
    for used_s, entry in sorted((_used_s(entry), entry) for entry in entries):
        if total_bytes <= limit_bytes or time.time() - used_s < IN_USE_S:
            return
        if _removed_unless_in_use(entry):
            total_bytes -= sizes[entry]


def _removed_unless_in_use(entry: Path) -> bool:
    """Remove an entry, and return whether that was done: it may have come into use since it was looked at."""
    with contextlib.suppress(BlockingIOError), entry_lock(entry, fcntl.LOCK_EX | fcntl.LOCK_NB):
        if time.time() - _used_s(entry) < IN_USE_S:
            return False
        with contextlib.suppress(OSError):
            remove_tree(entry)
        return True
    return False


@contextlib.contextmanager
def entry_lock(entry: Path, mode: int) -> Iterator[None]:
    """Hold the lock of an entry, which need not exist, during the block.

    Whoever makes or removes the entry holds it alone, whoever notes its use together with others.

    Args:
        entry: folder of inputs or of a build.
        mode: of ``fcntl.flock``.

    Raises:
        BlockingIOError: ``mode`` does not wait, and another has it.
    """
    name = f"{entry.name[:LOCK_CHARS]}{LOCK_SUFFIX}"
    with open(entry.with_name(name), "w", encoding="ascii") as lock:
        fcntl.flock(lock, mode)
        yield


def part_sizes(cache_dir: Path) -> list[PartSize]:
    """Return the size of each part of the cache."""
    found = [(part, list(_entries(cache_dir, part))) for part in _PARTS]
    return [
        PartSize(part.name, len(entries), sum(map(_size_bytes, entries)), part.limited)
        for part, entries in found
    ]


def clear(cache_dir: Path) -> int:
    """Remove everything that can be recreated; return the number of bytes freed.

    Raises:
        MisuseError: a daemon uses the cache.
        OSError: an entry cannot be removed.
    """
    if not cache_dir.exists():
        return 0
    with _locked(cache_dir, fcntl.LOCK_EX | fcntl.LOCK_NB):
        freed_bytes = 0
        for part in _PARTS:
            for entry in list(_entries(cache_dir, part)):
                freed_bytes += _size_bytes(entry)
                _remove(entry)
    return freed_bytes


@contextlib.contextmanager
def in_use(cache_dir: Path) -> Iterator[None]:
    """Prevent other processes from clearing the cache during the block."""
    with _locked(cache_dir, fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def _locked(cache_dir: Path, mode: int) -> Iterator[None]:
    with open(cache_dir / _USERS_NAME, "w", encoding="ascii") as users:
        try:
            fcntl.flock(users, mode)
        except BlockingIOError as error:
            raise MisuseError(f"a daemon uses the cache {cache_dir}: stop it first") from error
        yield


def _entries(cache_dir: Path, part: _Part) -> Iterator[Path]:
    """Yield the entries of a part, without lock files."""
    return (path for path in cache_dir.glob(part.entries) if path.suffix != LOCK_SUFFIX)


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        remove_tree(entry)
    else:
        entry.unlink(missing_ok=True)


def _used_s(entry: Path) -> float:
    try:
        return entry.stat().st_mtime
    except FileNotFoundError:  # another process removes entries too
        return 0.0


def _size_bytes(entry: Path) -> int:
    """Return the size of an entry, ignoring files that vanish meanwhile."""
    total_bytes = 0
    left = [str(entry)]
    while left:
        path = left.pop()
        with contextlib.suppress(OSError):  # also where it is nested deeper than a path can say
            status = os.lstat(path)
            total_bytes += status.st_size
            if stat.S_ISDIR(status.st_mode):
                with os.scandir(path) as found:
                    left += [each.path for each in found]
    return total_bytes


class BuildStore:
    """Builds equal contents once: workers that need the same build share one. A damaged one is made again.

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
        final.parent.mkdir(parents=True, exist_ok=True)
        with entry_lock(final, fcntl.LOCK_SH):
            if OWN_FILES.use(final):
                os.utime(final)
                return final, 0.0
        with entry_lock(final, fcntl.LOCK_EX):
            if OWN_FILES.use(final):
                os.utime(final)
                return final, 0.0
            if final.exists():
                OWN_FILES.note_repair("builds")
                remove_tree(final)
            started_s = time.perf_counter()
            building = Path(tempfile.mkdtemp(dir=final.parent, prefix="building-"))
            try:
                failure = make(building)
                seconds = time.perf_counter() - started_s
                if failure is not None:
                    return Failure(failure.status, failure.diagnostics, seconds)
                OWN_FILES.seal(building, final=final)
                building.rename(final)
            finally:
                remove_tree(building)  # gone already after a rename
        return final, seconds
