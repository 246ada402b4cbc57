"""The results store: one SQLite file with the settings, proposals, results and costs of runs.

Journals remain the source from which runs are resumed; the store is the source of tables and figures. One
process writes at a time, any number may read (write-ahead log, so not on a network file system). A run is
written in one transaction and identified by the digest of its journal's header. Writing it again is
idempotent, writing it after it was continued adds the missing records, and a contradicting record is refused.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from ascend_gym.core.closing import Closing
from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.sweep.run_records import (
    EvaluationRecord,
    OperatorRecord,
    RunRecord,
    SessionRecord,
    SourceRecord,
    StoredRun,
    unpacked,
)
from ascend_gym.sweep.schema import SCHEMA_VERSION, TABLES, VIEWS

_BUSY_TIMEOUT_S = 30.0
_CHECKPOINT_PAGES = 10_000  # 40 MB; the default of 4 MB waits for the disk once for every 30 runs

_TABLE_OF: dict[type, str] = {
    EvaluationRecord: "evaluations",
    OperatorRecord: "operators",
    RunRecord: "runs",
    SessionRecord: "sessions",
    SourceRecord: "sources",
}

R = TypeVar("R", EvaluationRecord, OperatorRecord, RunRecord, SessionRecord, SourceRecord)


class ResultsStore(Closing):
    """Reads and, if opened for writing, writes one store.

    Attributes:
        path: SQLite file.
    """

    def __init__(self, path: Path, *, write: bool = False) -> None:
        """Open the store at ``path``.

        Args:
            path: file; created if opened for writing.
            write: whether to open it for writing, as the only writer.

        Raises:
            MisuseError: the store does not exist, has another version, or another process writes it.
        """
        self.path = path
        self._lock = _writer_lock(path) if write else None
        try:
            self._database = _connected(path, write)
        except MisuseError:
            self._unlock()
            raise

    def put(self, stored: StoredRun) -> bool:
        """Store a run or its missing records; return whether anything was added.

        Raises:
            MisuseError: the store contains the same run with another outcome.
            InfrastructureError: writing fails, for example because the disk is full.
        """
        with self._transaction():
            known = self.run(stored.run.run_id)
            if known is None:
                self._insert([stored.run])
            else:
                check_agreement(known, self.chain(known.run_id), stored.run, _chain_of(stored))
            if known is not None and goes_further(stored.run, known):
                self._insert([replace(stored.run, source=known.source)], "REPLACE")
            steps = known.steps if known else 0
            self._insert(stored.evaluations[steps:])
            added = self._insert(stored.sources) + self._insert(stored.sessions)
            added += self._insert([stored.operator] if stored.operator else [])
        return bool(added) or known is None or goes_further(stored.run, known)

    def runs(
        self,
        *,
        op_id: str | None = None,
        variant: str | None = None,
        seed: int | None = None,
        chip: str | None = None,
        finished: bool | None = None,
    ) -> list[RunRecord]:
        """Return matching runs, ordered by operator, variant, model, chip, budget and seed.

        Args:
            op_id: only runs on this operator.
            variant: only runs of this method and its options.
            seed: only runs with this seed.
            chip: only runs priced for this chip.
            finished: only finished runs (``True``) or only unfinished ones (``False``).
        """
        wanted = {"op_id": op_id, "variant": variant, "seed": seed, "chip": chip}
        given = {name: value for name, value in wanted.items() if value is not None}
        conditions = [f"{name} = :{name}" for name in given]
        if finished is not None:
            conditions.append(f"stop_reason IS {'NOT ' if finished else ''}NULL")
        order = "ORDER BY op_id, variant, model, chip, budget, seed, run_id"
        return self._select(RunRecord, f"WHERE {' AND '.join(conditions) or 'TRUE'} {order}", given)

    def run(self, run_id: str) -> RunRecord | None:
        """Return the run with that id, or ``None``."""
        found = self._select(RunRecord, "WHERE run_id = ?", (run_id,))
        return found[0] if found else None

    def run_named(self, prefix: str) -> RunRecord:
        """Return the only run whose id begins with ``prefix``.

        Raises:
            MisuseError: there is none, or there are several.
        """
        found = self._select(RunRecord, "WHERE substr(run_id, 1, ?) = ?", (len(prefix), prefix))
        if len(found) != 1:
            raise MisuseError(
                f"{self.path}: {len(found) or 'no'} runs have an id that begins with {prefix!r}"
            )
        return found[0]

    def evaluations(self, run_id: str) -> list[EvaluationRecord]:
        """Return the evaluations of a run in proposal order, the baseline first."""
        return self._select(EvaluationRecord, "WHERE run_id = ? ORDER BY idx", (run_id,))

    def incumbents(self, run_id: str) -> list[EvaluationRecord]:
        """Return the evaluations that became the best of their run, starting with the baseline."""
        return self._select(EvaluationRecord, "WHERE run_id = ? AND improved ORDER BY idx", (run_id,))

    def chain(self, run_id: str) -> list[str]:
        """Return the digest of the journal up to each evaluation of a run."""
        rows = self.query("SELECT chain_digest FROM evaluations WHERE run_id = ? ORDER BY idx", (run_id,))
        return [digest for (digest,) in rows]

    def result(self, evaluation: EvaluationRecord) -> dict[str, Any]:
        """Return the result of an evaluation as JSON: status, cases with profiles, diagnostics.

        It has the fields of ``EvalResult`` except those that differ between hosts.
        """
        if evaluation.detail is not None:
            return unpacked(evaluation.detail)
        key = (evaluation.run_id, evaluation.duplicate_of)
        originals = self._select(EvaluationRecord, "WHERE run_id = ? AND idx = ?", key)
        return self.result(originals[0])

    def changed_files(self, run: RunRecord, candidate_digest: str) -> dict[str, str]:
        """Return the text by path of every file of a candidate that differs from the operator's own."""
        if candidate_digest == run.baseline_digest:
            return {}
        return self._files(run.baseline_digest, candidate_digest) or {}

    def baseline_files(self, run: RunRecord) -> dict[str, str] | None:
        """Return the operator's own files by path; ``None`` if the reader of the run did not have them."""
        return self._files(run.baseline_digest, run.baseline_digest)

    def sessions(self, run_id: str) -> list[SessionRecord]:
        """Return the processes that worked on a run, in order of their start."""
        return self._select(SessionRecord, "WHERE run_id = ? ORDER BY started_at, session_digest", (run_id,))

    def operators(self) -> list[OperatorRecord]:
        """Return the operators that runs of this store refer to, by id."""
        return self._select(OperatorRecord, "ORDER BY op_id, folder_digest")

    def operator(self, run: RunRecord) -> OperatorRecord | None:
        """Return the properties of a run's operator; ``None`` if they were not available when it was read."""
        key = (run.op_id, run.folder_digest)
        found = self._select(OperatorRecord, "WHERE op_id = ? AND folder_digest = ?", key)
        return found[0] if found else None

    def stored_run(self, run: RunRecord) -> StoredRun:
        """Return a run with all its records."""
        condition = (
            "WHERE baseline_digest = ? AND candidate_digest IN "
            "(SELECT candidate_digest FROM evaluations WHERE run_id = ?)"
        )
        return StoredRun(
            run,
            tuple(self.evaluations(run.run_id)),
            tuple(self._select(SourceRecord, condition, (run.baseline_digest, run.run_id))),
            tuple(self.sessions(run.run_id)),
            self.operator(run),
        )

    def query(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a SELECT over the tables and views.

        Raises:
            MisuseError: SQLite rejects the query.
        """
        try:
            yield from self._database.execute(sql, parameters)
        except sqlite3.Error as error:
            raise MisuseError(f"{self.path}: {error}; the query was: {sql}") from error

    def close(self) -> None:
        """Close the store; its contents remain."""
        self._database.close()
        self._unlock()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._lock is None:
            raise MisuseError(f"{self.path} was opened for reading only: open it with write=True")
        try:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                yield
        except sqlite3.Error as error:
            raise InfrastructureError(f"{self.path} cannot be written: {error}") from error

    def _select(self, kind: type[R], rest: str, parameters: Any = ()) -> list[R]:
        sql = f"SELECT {', '.join(columns_of(kind))} FROM {_TABLE_OF[kind]} {rest}"
        return [kind(*row) for row in self.query(sql, parameters)]

    def _insert(self, records: Iterable[R], otherwise: str = "IGNORE") -> int:
        """Insert records of one kind; return how many of them were new."""
        rows = list(records)
        if not rows:
            return 0
        columns = columns_of(rows[0])
        table = f"{_TABLE_OF[type(rows[0])]} ({', '.join(columns)})"
        sql = f"INSERT OR {otherwise} INTO {table} VALUES ({', '.join('?' * len(columns))})"
        return self._database.executemany(sql, map(attrgetter(*columns), rows)).rowcount

    def _files(self, baseline_digest: str, candidate_digest: str) -> dict[str, str] | None:
        key = (baseline_digest, candidate_digest)
        found = self._select(SourceRecord, "WHERE baseline_digest = ? AND candidate_digest = ?", key)
        return unpacked(found[0].files) if found else None

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def columns_of(kind: Any) -> tuple[str, ...]:
    """Return the columns of a record type."""
    return tuple(each.name for each in fields(kind))


def _chain_of(stored: StoredRun) -> list[str]:
    return [each.chain_digest for each in stored.evaluations]


def _writer_lock(path: Path) -> int:
    """Lock ``path`` for writing; the lock ends with the process."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path.with_name(f"{path.name}.writer"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise MisuseError(f"{path} cannot be written: {error}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise MisuseError(f"{path}: another process is writing it: wait for its end, or stop it") from error
    return lock


def _connected(path: Path, write: bool) -> sqlite3.Connection:
    """Open the database; create it if it is opened for writing and does not exist.

    Raises:
        MisuseError: it does not exist, cannot be opened, is not a store, or has another version.
    """
    if not write and not path.is_file():
        raise MisuseError(
            f"{path}: there is no results store; 'ascend-gym runs import runs' or a sweep makes one"
        )
    try:
        database = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
        database.execute(f"PRAGMA query_only = {int(not write)}")
        if write:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            database.execute("PRAGMA synchronous = NORMAL")  # what a power failure takes, journals still hold
            _make(database)
        version = _version(database)
    except sqlite3.Error as error:
        raise MisuseError(f"{path} is not a results store: {error}") from error
    if version != str(SCHEMA_VERSION):
        database.close()
        raise MisuseError(
            f"{path} is a store of version {version}, this is for version {SCHEMA_VERSION}: "
            "make a new one from the folders of the runs with 'ascend-gym runs import runs'"
        )
    return database


def _version(database: sqlite3.Connection) -> str:
    (version,) = database.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    return str(version)


def _make(database: sqlite3.Connection) -> None:
    """Create the tables of an empty database in one transaction."""
    if database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
        return
    version = f"INSERT INTO meta VALUES ('schema_version', '{SCHEMA_VERSION}');"
    database.executescript(f"BEGIN IMMEDIATE; {TABLES} {VIEWS} {version} COMMIT;")


def goes_further(one: RunRecord, other: RunRecord) -> bool:
    """Say whether ``one`` knows more of the same run than ``other``."""
    return (one.steps, one.finished) > (other.steps, other.finished)


def check_agreement(
    one: RunRecord, one_chain: Sequence[str], other: RunRecord, other_chain: Sequence[str]
) -> None:
    """Check that two records with one id are of one run, as far as both go.

    Args:
        one: a run.
        one_chain: digest of its journal up to each evaluation; each follows from all before it.
        other: a run with the same id.
        other_chain: likewise.

    Raises:
        MisuseError: they differ; both are named.
    """
    common = min(len(one_chain), len(other_chain))
    for index in range(common):
        if one_chain[index] != other_chain[index]:
            raise _conflict(one, other, f"in evaluation {index}")
    for shorter, longer in ((one, other), (other, one)):
        if shorter.finished and longer.steps > shorter.steps:
            raise _conflict(one, other, f"in length: the one in {shorter.source} had ended")
    if one.finished and other.finished and one.last_digest != other.last_digest:
        raise _conflict(one, other, f"in their ends ({one.stop_reason}, {other.stop_reason})")


def _conflict(one: RunRecord, other: RunRecord, where: str) -> MisuseError:
    return MisuseError(
        f"two runs of {one.variant} on {one.op_id} with seed {one.seed} differ {where}: that of {one.source} "
        f"and that of {other.source}. Same settings on the same simulator give the same run: was one made "
        "with another version, or on a device? Keep them in stores of their own, or leave one out"
    )
