"""Looks at every byte of a cache, removes what is damaged, and voids the results that came from it."""

from __future__ import annotations

import fcntl
import json
import re
import sqlite3
import time
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.remove_tree import remove_tree
from npu_daemon.cache_folder import (
    BUILDS_FOLDER,
    CANN_FOLDER,
    DEFAULT_LIMIT_BYTES,
    IN_USE_S,
    INPUTS_FOLDER,
    RESULTS_NAME,
    RESULTS_SHARE,
    entry_lock,
)
from npu_daemon.own_files import MANIFEST_NAME, OWN_FILES
from npu_daemon.store import SqliteResultStore

_ENTRIES = (f"{INPUTS_FOLDER}/*", f"{BUILDS_FOLDER}/*/*/*", f"{CANN_FOLDER}/*/*/*")
_UNFINISHED = ("new-", "building-")
# How releases without manifests told of damaged files of theirs, in the verdict on a candidate.
_BLAMED = re.compile(
    r"libasim_host\.so|error while loading shared libraries|file too short|cannot open shared object file"
    r"|exit status 12[67] instead of returning|the run changed [^\"]*, which is read-only"
)


@dataclass(frozen=True)
class CacheState:
    """What was found in a cache.

    Attributes:
        checked: folders of which every byte was read.
        damaged: what was wrong with folders, by their paths in the cache; they are gone, and made again when
            they are needed.
        voided: results that came from them, or that blame a candidate for what can only be this host's fault.
    """

    checked: int
    damaged: dict[str, str]
    voided: int


def verify_cache(cache_dir: Path) -> CacheState:
    """Compare everything in a cache with its digests; remove what is damaged, and void what came of it.

    Daemons may use the cache meanwhile.

    Raises:
        sqlite3.Error: the file of results is damaged itself.
    """
    checked, damaged = 0, {}
    entries = [entry for pattern in _ENTRIES for entry in cache_dir.glob(pattern) if entry.is_dir()]
    for entry in entries:
        with entry_lock(entry, fcntl.LOCK_EX):
            if entry.name.startswith(_UNFINISHED):
                if entry.exists() and time.time() - entry.stat().st_mtime > IN_USE_S:
                    remove_tree(entry)
                continue
            problem = OWN_FILES.problem(entry, deep=True) if entry.exists() else None
            checked += 1
            if problem is not None:
                damaged[str(entry.relative_to(cache_dir))] = problem
                remove_tree(entry)
    for manifest in cache_dir.glob(f"toolchain/*/{MANIFEST_NAME}"):
        problem = OWN_FILES.problem(manifest.parent, deep=True)
        checked += 1
        if problem is not None:  # its programs may be running: whoever needs it next replaces them
            damaged[str(manifest.parent.relative_to(cache_dir))] = problem
    return CacheState(checked, damaged, _void(cache_dir, frozenset(damaged)))


def false_verdicts(cache_dir: Path) -> int:
    """Count the stored results that ``verify_cache`` would void, by the sizes of files; change nothing."""
    path = cache_dir / RESULTS_NAME
    if not path.is_file():
        return 0
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        found = database.execute(
            "SELECT result, folders FROM kept_results LEFT JOIN origins USING (number)"
        ).fetchall()
    origins = [(text, json.loads(folders or "[]")) for text, folders in found]
    damaged = {
        name
        for name in {each for _, folders in origins for each in folders}
        if (cache_dir / name).exists() and not _has_its_sizes(cache_dir / name)
    }
    return sum(
        bool(damaged.intersection(folders)) or _BLAMED.search(text) is not None for text, folders in origins
    )


def _has_its_sizes(folder: Path) -> bool:
    try:
        files = json.loads((folder / MANIFEST_NAME).read_text("utf-8"))["files"].items()
        return all((folder / name).stat().st_size == size for name, (size, *_) in files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _void(cache_dir: Path, damaged: Collection[str]) -> int:
    if not (cache_dir / RESULTS_NAME).is_file():
        return 0

    def is_false(text: str, folders: Collection[str]) -> bool:
        return any(folder in damaged for folder in folders) or _BLAMED.search(text) is not None

    store = SqliteResultStore(cache_dir / RESULTS_NAME, DEFAULT_LIMIT_BYTES // RESULTS_SHARE)
    try:
        return store.void(is_false)
    finally:
        store.close()
