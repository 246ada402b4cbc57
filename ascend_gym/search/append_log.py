"""An append-only file of JSON lines that survives a crash in the middle of a line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from ascend_gym.core.errors import MisuseError


class AppendLog:
    """JSON objects, one per line; each is on disk when ``append`` returns.

    Opening a file whose last line was torn by a crash removes that line and keeps all before it.

    Attributes:
        path: the file.
        records: the objects in it, in order.
        torn_bytes: bytes of a torn last line that were removed on opening.
    """

    def __init__(self, path: Path) -> None:
        """Open ``path`` and read what is in it; the file and its folder are created when missing.

        Raises:
            MisuseError: a line other than the last is not a JSON object: the file is no such log.
        """
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.records, whole_bytes, self.torn_bytes = _read(path) if path.exists() else ([], 0, 0)
        self._file = path.open("ab")
        if self.torn_bytes:
            self._file.truncate(whole_bytes)
        self._sync()
        _sync_folder(path.parent)

    def append(self, record: dict[str, Any]) -> None:
        """Write one object; it is on disk on return. Keys are sorted, so equal objects give equal bytes."""
        self._file.write(canonical_json(record).encode() + b"\n")
        self._sync()
        self.records.append(record)

    def keep(self, count: int) -> None:
        """Remove all but the first ``count`` objects."""
        del self.records[count:]
        self._file.truncate(sum(len(canonical_json(record).encode()) + 1 for record in self.records))
        self._sync()

    def close(self) -> None:
        """Close the file; what was appended stays."""
        self._file.close()

    def __enter__(self) -> AppendLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a log, which is left as it is; a torn last line is not among them.

    Raises:
        MisuseError: there is no such file, or a line other than the last is not a JSON object.
    """
    if not path.is_file():
        raise MisuseError(f"{path}: there is no such file")
    return _read(path)[0]


def canonical_json(record: dict[str, Any]) -> str:
    """Return the one JSON text of ``record``: sorted keys, no spaces, no NaN."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _read(path: Path) -> tuple[list[dict[str, Any]], int, int]:
    """Return the objects of a log, the bytes of its whole lines, and those of a torn last one."""
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    records = [_decoded(path, number, line) for number, line in enumerate(whole.splitlines(), 1)]
    return records, len(whole), len(content) - len(whole)


def _decoded(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
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
