"""Whether the files of the cache are as they were written: looked at before anybody else is blamed.

Each folder of the cache that is made as a whole (a build, the values of a case, the simulator) has a manifest
with size, SHA-256 digest and executable bits of its files. A process compares them when it first uses a
folder, and again where the attributes of a file have changed, which every write does; otherwise it looks at
attributes alone. Whoever finds a folder damaged makes it again. Nothing waits for the disk: the next process
that uses a folder finds what a power failure tore.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import stat
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

MANIFEST_NAME = "manifest.json"
_CHUNK_BYTES = 1 << 20
_EXECUTABLE = 0o111
Attributes = tuple[int, int, int, int, int]
"""Of a regular file: device, inode, size, and the times of the last changes in nanoseconds."""


def file_digest(path: Path) -> str:
    """Return the SHA-256 hex digest of a file's bytes (processors have instructions for it)."""
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            hasher.update(chunk)
    return hasher.hexdigest()


def attributes_of(path: Path) -> Attributes | None:
    """Return the attributes that every write to a regular file changes; ``None`` if it does not exist."""
    try:
        status = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def private_file(path: Path) -> Path:
    """Return the path of a file that only this user can read and write, made empty if it is missing."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    return path


@dataclass
class OwnFiles:
    """What this process knows about folders with a manifest; safe for several threads.

    Attributes:
        repaired: how many folders were found damaged since ``take_repaired``, by the part of the cache.
    """

    repaired: Counter[str] = field(default_factory=Counter)
    _seen: dict[Path, dict[str, tuple[Attributes, str]]] = field(default_factory=dict)
    _recorders: list[set[Path]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def seal(self, folder: Path, names: Iterable[str] | None = None, final: Path | None = None) -> None:
        """Write the manifest of a folder.

        Args:
            folder: holds finished files.
            names: paths of the files relative to it; all regular files below it by default.
            final: where the folder is about to be renamed to, if that is elsewhere.
        """
        if names is None:
            found = (path for path in sorted(folder.rglob("*")) if attributes_of(path) is not None)
            names = [str(path.relative_to(folder)) for path in found]
        files, seen = {}, {}
        for name in names:
            path = folder / name
            attributes = attributes_of(path)
            if attributes is None:
                raise FileNotFoundError(path)
            files[name] = (attributes[2], file_digest(path), path.stat().st_mode & _EXECUTABLE)
            seen[name] = attributes
        manifest = folder / f"{MANIFEST_NAME}.new"
        manifest.write_text(json.dumps({"files": files}), encoding="utf-8")
        manifest.rename(folder / MANIFEST_NAME)
        with self._lock:
            self._seen[final or folder] = {name: (value, files[name][1]) for name, value in seen.items()}
        self._record(final or folder)

    def _record(self, folder: Path) -> None:
        with self._lock:
            for used in self._recorders:
                used.add(folder)

    def use(self, folder: Path) -> bool:
        """Return whether a folder is there and undamaged; it is noted as used then."""
        if self.problem(folder) is not None:
            return False
        self._record(folder)
        return True

    def problem(self, folder: Path, *, deep: bool = False) -> str | None:
        """Return what is wrong with a folder in words, or ``None``.

        Args:
            folder: folder with a manifest.
            deep: compare digests even where attributes say that nothing changed.
        """
        with self._lock:
            seen = {} if deep else self._seen.get(folder, {})
        try:
            document = json.loads((folder / MANIFEST_NAME).read_text("utf-8"))
            listed = document["files"].items()  # earlier releases noted no bits
            files = {
                str(name): (int(size), str(digest), [int(each) for each in bits])
                for name, (size, digest, *bits) in listed
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            return self._forgotten(folder, f"its manifest cannot be read ({type(error).__name__})")
        for name, (size_bytes, digest, bits) in files.items():
            attributes = attributes_of(folder / name)
            if attributes is None:
                return self._forgotten(folder, f"{name} is missing")
            if attributes[2] != size_bytes:
                found = f"{name} has {attributes[2]} bytes instead of {size_bytes}"
                return self._forgotten(folder, found)
            if seen.get(name) == (attributes, digest):
                continue
            try:
                same = file_digest(folder / name) == digest
            except OSError as error:
                return self._forgotten(folder, f"{name} cannot be read: {error.strerror}")
            if not same:
                return self._forgotten(folder, f"{name} has other bytes than were written")
            if bits and (folder / name).stat().st_mode & _EXECUTABLE != bits[0]:
                return self._forgotten(folder, f"{name} has other executable bits than it was written with")
            seen = {**seen, name: (attributes, digest)}
        with self._lock:
            self._seen[folder] = seen
        return None

    def _forgotten(self, folder: Path, problem: str) -> str:
        with self._lock:
            self._seen.pop(folder, None)
        return problem

    def verified(self, path: Path) -> Attributes | None:
        """Return the attributes that a file of a folder had when its digest was compared or written."""
        with self._lock:
            found = self._seen.get(path.parent, {}).get(path.name)
        return None if found is None else found[0]

    @contextlib.contextmanager
    def recording(self) -> Iterator[set[Path]]:
        """Collect the folders that this process makes or uses during the block."""
        used: set[Path] = set()
        with self._lock:
            self._recorders.append(used)
        try:
            yield used
        finally:
            with self._lock:
                self._recorders = [each for each in self._recorders if each is not used]

    def damaged(self, folders: Iterable[Path], *, deep: bool = False) -> dict[Path, str]:
        """Return which of the folders are damaged, with what is wrong."""
        found = ((folder, self.problem(folder, deep=deep)) for folder in sorted(folders))
        return {folder: problem for folder, problem in found if problem is not None}

    def note_repair(self, part: str) -> None:
        """Count a damaged folder that is made again.

        Args:
            part: part of the cache, as in ``cache show``.
        """
        with self._lock:
            self.repaired[part] += 1

    def take_repaired(self) -> dict[str, int]:
        """Return and forget the repairs that were counted."""
        with self._lock:
            taken, self.repaired = dict(self.repaired), Counter()
        return taken


OWN_FILES = OwnFiles()
"""What this process knows: "first use" is that of the process."""
