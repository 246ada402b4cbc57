"""What outlives the broker: accepted jobs, recent answers and charges, in one SQLite file."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.records import Charge, EvalRequest, EvalResult
from npu_daemon.broker.events import (
    DropJob,
    Name,
    Record,
    Restore,
    SaveAnswer,
    SavedCharge,
    SavedJob,
    SaveJob,
)
from npu_daemon.broker.jobs import KEPT_ANSWERS, KEPT_CHARGES

_TABLES = """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    client BLOB NOT NULL,
    request_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    request TEXT NOT NULL,
    UNIQUE (client, request_id)
);
CREATE TABLE IF NOT EXISTS answers (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    client BLOB NOT NULL,
    request_id TEXT NOT NULL,
    result TEXT NOT NULL,
    UNIQUE (client, request_id)
);
CREATE TABLE IF NOT EXISTS charges (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    client BLOB NOT NULL,
    request_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    evaluations INTEGER NOT NULL,
    device_seconds REAL NOT NULL,
    UNIQUE (client, request_id)
);
"""
_PRUNE_EVERY = 1_000


class JobJournal:
    """A broker's record, for one broker at a time.

    What was written survives the end of the process, however it ends; the last moments before a loss of power
    may be missing (write-ahead log without a sync for each transaction).

    Args:
        path: the file; it and its folder are made.

    Raises:
        MisuseError: another broker uses it.
        InfrastructureError: it is no such file, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock_fd = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock_fd)
            raise MisuseError(f"another daemon uses {path}: give this one a --journal of its own") from error
        try:
            self._database = sqlite3.connect(path, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.executescript(_TABLES)
        except sqlite3.Error as error:
            os.close(self._lock_fd)
            raise InfrastructureError(f"{path} cannot be used as a record of jobs: {error}") from error
        self._written = 0

    def load(self) -> Restore:
        """Return what earlier brokers left.

        Raises:
            InfrastructureError: it cannot be read.
        """
        try:
            return Restore(self._jobs(), self._answers(), self._charges())
        except (sqlite3.Error, ValidationError) as error:
            raise InfrastructureError(
                f"{self.path} cannot be read: {error}; it was written by another version or damaged, remove "
                "it to start without its jobs"
            ) from error

    def write(self, records: Iterable[Record]) -> None:
        """Write what the broker has decided, all of it or nothing.

        Raises:
            InfrastructureError: it cannot be written.
        """
        try:
            self._database.execute("BEGIN")
            for record in records:
                self._write(record)
                self._written += 1
            if self._written >= _PRUNE_EVERY:
                self._prune()
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            raise InfrastructureError(f"{self.path} cannot be written: {error}") from error

    def close(self) -> None:
        """Close the file and let go of it."""
        self._database.close()
        os.close(self._lock_fd)

    def _write(self, record: Record) -> None:
        if isinstance(record, SaveJob):
            job = record.job
            row = (*job.name, job.tenant, job.request.model_dump_json())
            self._database.execute(
                "INSERT OR IGNORE INTO jobs (client, request_id, tenant, request) VALUES (?, ?, ?, ?)", row
            )
        elif isinstance(record, SaveAnswer):
            self._drop(record.name)
            self._save_answer(record)
        elif isinstance(record, DropJob):
            self._drop(record.name)

    def _save_answer(self, record: SaveAnswer) -> None:
        self._database.execute(
            "INSERT OR REPLACE INTO answers (client, request_id, result) VALUES (?, ?, ?)",
            (*record.name, record.result.model_dump_json()),
        )
        if record.charge is not None:
            charge = record.charge
            self._database.execute(
                "INSERT OR IGNORE INTO charges (client, request_id, tenant, evaluations, device_seconds) "
                "VALUES (?, ?, ?, ?, ?)",
                (*record.name, record.tenant, charge.evaluations, charge.device_seconds),
            )

    def _drop(self, name: Name) -> None:
        self._database.execute("DELETE FROM jobs WHERE client = ? AND request_id = ?", name)

    def _prune(self) -> None:
        self._written = 0
        for table, kept in (("answers", KEPT_ANSWERS), ("charges", KEPT_CHARGES)):
            self._database.execute(
                f"DELETE FROM {table} WHERE number <= (SELECT MAX(number) FROM {table}) - ?", (kept,)
            )

    def _jobs(self) -> tuple[SavedJob, ...]:
        rows = self._database.execute("SELECT client, request_id, tenant, request FROM jobs ORDER BY number")
        return tuple(
            SavedJob(Name(client, request_id), tenant, EvalRequest.model_validate_json(request))
            for client, request_id, tenant, request in rows
        )

    def _answers(self) -> tuple[tuple[Name, EvalResult], ...]:
        rows = self._database.execute("SELECT client, request_id, result FROM answers ORDER BY number")
        return tuple(
            (Name(client, request_id), EvalResult.model_validate_json(result))
            for client, request_id, result in rows
        )

    def _charges(self) -> tuple[SavedCharge, ...]:
        rows = self._database.execute(
            "SELECT client, request_id, tenant, evaluations, device_seconds FROM charges ORDER BY number"
        )
        return tuple(
            SavedCharge(Name(client, request_id), tenant, Charge(evaluations=count, device_seconds=seconds))
            for client, request_id, tenant, count, seconds in rows
        )
