"""Persistent state of the broker: accepted jobs, recent answers and charges, in one SQLite file."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
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
from npu_daemon.own_files import private_file

_TABLES = """
CREATE TABLE IF NOT EXISTS waiting_jobs (
    client BLOB NOT NULL,
    request_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    request TEXT NOT NULL,
    PRIMARY KEY (client, request_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answered_jobs (
    number INTEGER PRIMARY KEY,
    client BLOB NOT NULL,
    request_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    result TEXT,
    evaluations INTEGER,
    device_seconds REAL,
    UNIQUE (client, request_id)
);
"""
_SAVE_JOB = (
    "INSERT OR IGNORE INTO waiting_jobs (client, request_id, number, tenant, request) VALUES (?, ?, ?, ?, ?)"
)
_DROP_JOB = "DELETE FROM waiting_jobs WHERE client = ? AND request_id = ?"
_SAVE_ANSWER = """
INSERT INTO answered_jobs (client, request_id, number, tenant, result, evaluations, device_seconds)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (client, request_id) DO UPDATE SET number = excluded.number, result = excluded.result,
    evaluations = coalesce(evaluations, excluded.evaluations),
    device_seconds = coalesce(device_seconds, excluded.device_seconds)
"""
_LAST_NUMBER = (
    "SELECT max(number) FROM (SELECT number FROM waiting_jobs UNION SELECT max(number) FROM answered_jobs)"
)
_VERSION = 2
_PRUNE_EVERY = 1_000
_CHECKPOINT = "PRAGMA wal_checkpoint(PASSIVE)"
_CHECKPOINT_BYTES = 32 * 2**20  # of the log, about: each record takes a page and its text
_PAGE_BYTES = 4096


class JobJournal:
    """Persistent state of a broker; used by one broker at a time.

    Written data survives the end of the process in any case; a power failure may lose the last moments
    (write-ahead log, synchronised only when a thread merges its pages into the file, so
    that nobody waits for the disk). A job is kept until it is answered, its answer for a while,
    and its charge for longer.

    Args:
        path: file; it and its folder are created.

    Raises:
        MisuseError: another broker uses it.
        InfrastructureError: it is not a journal, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock_fd = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock_fd)
            raise MisuseError(f"another daemon uses {path}: give this one another --journal") from error
        try:
            self._database = sqlite3.connect(private_file(path), isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute("PRAGMA wal_autocheckpoint = 0")
            self._make_tables()
            self._last_number: int = self._database.execute(_LAST_NUMBER).fetchone()[0] or 0
        except (sqlite3.Error, InfrastructureError) as error:
            os.close(self._lock_fd)
            raise InfrastructureError(f"{path} cannot be used as a record of jobs: {error}") from error
        self._answered = 0
        self._without_result = 0
        self._logged_bytes = 0
        self._background = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._checkpoint: Future[None] | None = None

    def _make_tables(self) -> None:
        """Create the tables of a new file.

        Raises:
            InfrastructureError: the file has another version.
        """
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        (objects,) = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if objects and version != _VERSION:
            raise InfrastructureError(
                "it was written by another version of this daemon; remove it, or name another with "
                "--journal, to start without its jobs, answers and charges"
            )
        self._database.executescript(_TABLES)
        self._database.execute(f"PRAGMA user_version = {_VERSION}")

    def load(self) -> Restore:
        """Return the state of earlier brokers.

        Raises:
            InfrastructureError: the file cannot be read.
        """
        try:
            return Restore(self._jobs(), self._answers(), self._charges())
        except (sqlite3.Error, ValidationError) as error:
            raise InfrastructureError(
                f"{self.path} cannot be read: {error}; it was written by another version or damaged, remove "
                "it to start without its jobs"
            ) from error

    def write(self, records: Iterable[Record]) -> None:
        """Write the broker's decisions atomically.

        Raises:
            InfrastructureError: the file cannot be written.
        """
        try:
            self._database.execute("BEGIN")
            for record in records:
                self._write(record)
            if self._answered >= _PRUNE_EVERY:
                self._prune()
            self._database.execute("COMMIT")
            self._move_pages()
        except sqlite3.Error as error:
            raise InfrastructureError(f"{self.path} cannot be written: {error}") from error

    def close(self) -> None:
        """Close and unlock the file."""
        self._background.shutdown()
        self._database.close()
        os.close(self._lock_fd)

    def _move_pages(self) -> None:
        """Merge the pages of the log into the file from time to time, so that the log restarts.

        The thread merges nearly all pages; the few that were written meanwhile are merged directly.
        """
        if self._checkpoint is not None and self._checkpoint.done():
            self._checkpoint.result()
            self._checkpoint = None
            self._database.execute(_CHECKPOINT).fetchone()
        elif self._checkpoint is None and self._logged_bytes >= _CHECKPOINT_BYTES:
            self._logged_bytes = 0
            self._checkpoint = self._background.submit(_checkpoint, self.path)

    def _write(self, record: Record) -> None:
        self._last_number += 1
        self._logged_bytes += _PAGE_BYTES
        if isinstance(record, SaveJob):
            job = record.job
            text = job.request.model_dump_json()
            self._logged_bytes += len(text)
            row = (*job.name, self._last_number, job.tenant, text)
            self._database.execute(_SAVE_JOB, row)
        elif isinstance(record, SaveAnswer):
            self._database.execute(_DROP_JOB, record.name)
            charge = record.charge
            charged = (None, None) if charge is None else (charge.evaluations, charge.device_seconds)
            text = record.result.model_dump_json()
            self._logged_bytes += len(text)
            row = (*record.name, self._last_number, record.tenant, text, *charged)
            self._database.execute(_SAVE_ANSWER, row)
            self._answered += 1
        elif isinstance(record, DropJob):
            self._database.execute(_DROP_JOB, record.name)

    def _prune(self) -> None:
        """Drop the results of old answers, and the charges of still older ones."""
        self._answered = 0
        forgotten = self._newest_but(KEPT_ANSWERS)
        self._database.execute(
            "UPDATE answered_jobs SET result = NULL WHERE number > ? AND number <= ?",
            (self._without_result, forgotten),
        )
        self._without_result = forgotten
        self._database.execute(
            "DELETE FROM answered_jobs WHERE number <= ?", (self._newest_but(KEPT_CHARGES),)
        )

    def _newest_but(self, kept: int) -> int:
        """Return the number of the newest answered job outside the last ``kept``; 0 if there is none."""
        query = "SELECT number FROM answered_jobs ORDER BY number DESC LIMIT 1 OFFSET ?"
        row = self._database.execute(query, (kept,)).fetchone()
        return row[0] if row is not None else 0

    def _jobs(self) -> tuple[SavedJob, ...]:
        rows = self._database.execute(
            "SELECT client, request_id, tenant, request FROM waiting_jobs ORDER BY number"
        )
        return tuple(
            SavedJob(Name(client, request_id), tenant, EvalRequest.model_validate_json(request))
            for client, request_id, tenant, request in rows
        )

    def _answers(self) -> tuple[tuple[Name, EvalResult], ...]:
        rows = self._database.execute(
            "SELECT client, request_id, result FROM answered_jobs WHERE result IS NOT NULL ORDER BY number"
        )
        return tuple(
            (Name(client, request_id), EvalResult.model_validate_json(result))
            for client, request_id, result in rows
        )

    def _charges(self) -> tuple[SavedCharge, ...]:
        rows = self._database.execute(
            "SELECT client, request_id, tenant, evaluations, device_seconds FROM answered_jobs "
            "WHERE evaluations IS NOT NULL ORDER BY number"
        )
        return tuple(
            SavedCharge(Name(client, request_id), tenant, Charge(evaluations=count, device_seconds=seconds))
            for client, request_id, tenant, count, seconds in rows
        )


def _checkpoint(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute(_CHECKPOINT).fetchone()
