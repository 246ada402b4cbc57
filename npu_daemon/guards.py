"""Checks that the trusted process makes on what an untrusted run left behind. They fail closed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.records import Diagnostic, Phase

_CHUNK_BYTES = 1 << 20
_DIGEST_BYTES = 32


@dataclass(frozen=True)
class GuardedFile:
    """A file that no run may change.

    Attributes:
        label: what it is, for messages.
        path: where it is.
        digest: what ``file_digest`` gives for what it must contain.
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


def changed_file(files: Iterable[GuardedFile]) -> Diagnostic | None:
    """Return a diagnostic about the first file that is gone or has other bytes than before the run."""
    for file in files:
        if not file.path.is_file() or file_digest(file.path) != file.digest:
            message = f"the run changed {file.label}, which is read-only: write nothing but the outputs"
            return Diagnostic(phase=Phase.GUARD, message=message)
    return None
