"""Files that survive a crash: written whole, or appended to line by line."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from ascend_gym.core.closing import Closing
from ascend_gym.core.errors import InfrastructureError, MisuseError


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically: after a crash it has either the old or the new contents.

    Only one process at a time may write a file; its folder is created if missing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f"{path.name}.part")
    with scratch.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)


class AppendLog(Closing):
    """JSON objects, one per line; each is on disk when ``append`` returns.

    If a crash left the last line incomplete, opening the file removes that line and keeps all others. Several
    processes may append to one file; each sees the records that existed when it opened the file.

    Attributes:
        path: file.
        records: objects in the file, in order.
        torn_bytes: size in bytes of an incomplete last line that was removed on opening.
    """

    def __init__(self, path: Path, *, alone: bool = False) -> None:
        """Open ``path`` and read its records; the file and its folder are created if missing.

        Args:
            path: file.
            alone: whether to lock the file against other processes; the lock ends with the process.

        Raises:
            MisuseError: the file cannot be opened; a line other than the last is not a JSON object, so this
                is not a log; or another process has locked it.
        """
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise MisuseError(f"{path} cannot be written: {error}") from error
        self._alone = alone
        try:
            with self._locked():
                self.records, whole_bytes, self.torn_bytes = _read(path)
                if self.torn_bytes:
                    self._file.truncate(whole_bytes)
        except MisuseError:
            self._file.close()
            raise
        self._sync()
        _sync_folder(path.parent)

    def append(self, record: dict[str, Any]) -> None:
        """Write one object; it is on disk on return. Keys are sorted, so equal objects give equal bytes.

        Raises:
            InfrastructureError: writing fails, for example because the disk is full.
        """
        line = canonical_json(record).encode() + b"\n"
        if self._file.closed:
            raise InfrastructureError(f"{self.path} is closed: it could not be written before")
        try:
            with self._locked():
                while line:
                    line = line[self._file.write(line) :]
            self._sync()
        except OSError as error:
            self._file.close()  # what is torn stays the last line
            raise InfrastructureError(f"{self.path} cannot be written: {error}") from error
        self.records.append(record)

    def keep(self, count: int) -> None:
        """Remove all but the first ``count`` objects."""
        del self.records[count:]
        self._file.truncate(sum(len(canonical_json(record).encode()) + 1 for record in self.records))
        self._sync()

    def close(self) -> None:
        """Close the file; its records remain."""
        self._file.close()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the file against other processes, for the block or for as long as the file is open."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | (fcntl.LOCK_NB if self._alone else 0))
        except BlockingIOError as error:
            raise MisuseError(
                f"{self.path}: another process is writing it: wait for its end, or stop it"
            ) from error
        except OSError:  # a file system without locks
            yield
            return
        try:
            yield
        finally:
            if not self._alone:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _sync(self) -> None:
        os.fsync(self._file.fileno())


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a log without changing it; an incomplete last line is ignored.

    Raises:
        MisuseError: the file does not exist, or a line other than the last is not a JSON object.
    """
    if not path.is_file():
        raise MisuseError(f"{path}: there is no such file")
    return _read(path)[0]


def canonical_json(record: dict[str, Any]) -> str:
    """Return the canonical JSON text of ``record``: sorted keys, no spaces, no NaN."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _read(path: Path) -> tuple[list[dict[str, Any]], int, int]:
    """Return the objects of a log, and the byte sizes of its complete lines and of an incomplete last one."""
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    records = [_decoded(path, number, line) for number, line in enumerate(whole.splitlines(), 1)]
    return records, len(whole), len(content) - len(whole)


def _decoded(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = from_json(line)  # in half the time of json.loads
    except ValueError as error:
        raise MisuseError(f"{path}:{number}: expected a JSON object per line: {error}") from error
    if not isinstance(record, dict):
        raise MisuseError(f"{path}:{number}: expected a JSON object, got {type(record).__name__}")
    return record


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
