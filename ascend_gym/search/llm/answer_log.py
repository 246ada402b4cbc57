"""A file of answers by the digest of what was asked: the same question is never paid for twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ascend_gym.core.append_log import AppendLog, read_log
from ascend_gym.core.errors import ModelError
from ascend_gym.search.interrupts import interrupts_held_back


class AnswerLog:
    """Records with a ``digest`` field, one per JSON line. Safe for use from several threads.

    A line torn by a crash is dropped; of records with the same digest the first counts.
    """

    def __init__(self, path: Path, *, writable: bool) -> None:
        """Read ``path``; if ``writable``, create it when missing, else leave the file alone.

        Raises:
            MisuseError: the file is no log, or is missing and not writable.
        """
        self.path = path
        self._log = AppendLog(path) if writable else None
        records = self._log.records if self._log else read_log(path)
        self._known = {record.get("digest"): record for record in reversed(records)}
        self._asking: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, digest: str) -> dict[str, Any] | None:
        """Return the record of that digest, or ``None``."""
        return self._known.get(digest)

    def put(self, *records: dict[str, Any]) -> None:
        """Append those records whose digest is not known; they are on disk on return.

        Raises:
            ModelError: the log is read-only, or closed.
        """
        with self._lock, interrupts_held_back():
            if self._log is None:
                raise ModelError(f"{self.path} is not open for writing")
            for record in records:
                if record["digest"] not in self._known:
                    self._log.append(record)
                    self._known[record["digest"]] = record

    @contextmanager
    def sole_right(self, digest: str, timeout_s: float) -> Iterator[None]:
        """Hold the sole right to ask for ``digest``, so that threads with one question ask it once.

        Raises:
            ModelError: another thread has been asking for ``timeout_s``.
        """
        with self._lock:
            lock = self._asking.setdefault(digest, threading.Lock())
        if not lock.acquire(timeout=min(timeout_s, threading.TIMEOUT_MAX)):
            raise ModelError(f"the same question has been under way for {timeout_s:.3g} s")
        try:
            yield
        finally:
            lock.release()

    def close(self) -> None:
        """Close the file; what was recorded stays."""
        with self._lock:
            if self._log is not None:
                self._log.close()
            self._log = None
