"""Checks by the trusted process after an untrusted run. They fail closed."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.records import Diagnostic, Phase

_CHUNK_BYTES = 1 << 20
_DIGEST_BYTES = 32
_Attributes = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class GuardedFile:
    """A file that no run may change.

    Attributes:
        label: description for messages.
        path: path of the file.
        digest: ``file_digest`` of its original contents.
    """

    label: str
    path: Path
    digest: str


def file_digest(path: Path) -> str:
    """Return the BLAKE2b hex digest of a file's bytes (twice as fast as SHA-256 without its instructions)."""
    hasher = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            hasher.update(chunk)
    return hasher.hexdigest()


class UnchangedFiles:
    """Detects changes of files that no run may change.

    Confined runs cannot open such a file for writing. Then, once the bytes were read, equal attributes (which
    every write changes) imply equal bytes. Otherwise all bytes are read each time.
    """

    def __init__(self) -> None:
        self._seen: dict[Path, _Attributes] = {}

    def changed(self, files: Iterable[GuardedFile], *, confined: bool) -> Diagnostic | None:
        """Return a diagnostic about the first file that is missing or has changed; ``None`` if none has.

        Args:
            files: files to check.
            confined: whether the run was prevented from writing to them.
        """
        for file in files:
            if not self._is_unchanged(file, confined=confined):
                message = f"the run changed {file.label}, which is read-only: write nothing but the outputs"
                return Diagnostic(phase=Phase.GUARD, message=message)
        return None

    def forget(self, files: Iterable[GuardedFile]) -> None:
        """Drop what is known about files."""
        for file in files:
            self._seen.pop(file.path, None)

    def _is_unchanged(self, file: GuardedFile, *, confined: bool) -> bool:
        attributes = _attributes(file.path)
        if attributes is None:
            return False
        if confined and self._seen.get(file.path) == attributes:
            return True
        if file_digest(file.path) != file.digest:
            return False
        self._seen[file.path] = attributes
        return True


def _attributes(path: Path) -> _Attributes | None:
    """Return the attributes that every write to a regular file changes; ``None`` if it does not exist."""
    try:
        status = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
