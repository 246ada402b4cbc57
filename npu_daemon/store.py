"""Content-addressed results in one SQLite file, which several processes may share."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from pydantic import ValidationError

from ascend_gym.core.records import EvalResult, PhaseSeconds
from ascend_gym.core.status import Blame, rule_of
from npu_daemon.cache_folder import DEFAULT_LIMIT_BYTES, RESULTS_SHARE
from npu_daemon.own_files import private_file

_BUSY_TIMEOUT_S = 10.0
_PRUNE_EVERY = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS kept_results (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    size_bytes INTEGER NOT NULL,
    result TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS best_latencies (question TEXT PRIMARY KEY, latency_us REAL NOT NULL);
CREATE TABLE IF NOT EXISTS origins (number INTEGER PRIMARY KEY, folders TEXT NOT NULL);
CREATE TRIGGER IF NOT EXISTS without_result AFTER DELETE ON kept_results
    BEGIN DELETE FROM origins WHERE number = old.number; END;
CREATE TABLE IF NOT EXISTS repairs (part TEXT PRIMARY KEY, count INTEGER NOT NULL);
"""


class SqliteResultStore:
    """Stores results by the digest of everything that affects them.

    Safe for several processes (write-ahead log) and several threads (one lock). Results that say nothing
    about the candidate, because the caller or the infrastructure was at fault, are never stored.

    Args:
        path: database file; its folder is created.
        limit_bytes: limit of the results; the oldest are removed.
    """

    def __init__(self, path: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES // RESULTS_SHARE) -> None:
        self._limit_bytes = limit_bytes
        self._puts = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._database = sqlite3.connect(
            private_file(path), timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.executescript(_SCHEMA)

    def get(self, key: str) -> EvalResult | None:
        """Return the stored result marked as cached, or ``None``; an unreadable one counts as missing."""
        with self._lock:
            row = self._database.execute("SELECT result FROM kept_results WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        try:
            stored = EvalResult.model_validate_json(row[0])
        except ValidationError:
            return None
        return stored.model_copy(update={"cached": True, "seconds": PhaseSeconds()})

    def put(self, key: str, result: EvalResult, folders: Collection[str] = ()) -> None:
        """Store a result if it is storable.

        Args:
            key: digest of everything that affects it.
            result: result.
            folders: names of the folders of the cache that it came from.
        """
        if not is_storable(result):
            return
        with self._lock:
            text = result.model_dump_json()
            self._database.execute("DELETE FROM kept_results WHERE key = ?", (key,))
            number = self._database.execute(
                "INSERT OR REPLACE INTO kept_results (key, size_bytes, result) VALUES (?, ?, ?)",
                (key, len(text), text),
            ).lastrowid
            self._database.execute(
                "INSERT OR REPLACE INTO origins VALUES (?, ?)", (number, json.dumps(sorted(folders)))
            )
            self._puts += 1
            if self._puts % _PRUNE_EVERY == 0:
                self._prune()

    def best_us(self, question: str) -> float | None:
        """Return the lowest noted latency for a question in microseconds, or ``None``."""
        with self._lock:
            row = self._database.execute(
                "SELECT latency_us FROM best_latencies WHERE question = ?", (question,)
            ).fetchone()
        return None if row is None else float(row[0])

    def note_latency(self, question: str, latency_us: float) -> None:
        """Note a latency in microseconds; only the lowest of each question is kept."""
        with self._lock:
            self._database.execute(
                "INSERT INTO best_latencies VALUES (?, ?) ON CONFLICT (question) "
                "DO UPDATE SET latency_us = MIN(latency_us, excluded.latency_us)",
                (question, latency_us),
            )

    def note_repairs(self, repaired: Mapping[str, int]) -> None:
        """Count damaged folders of the cache that were made again, by its part."""
        with self._lock:
            self._database.executemany(
                "INSERT INTO repairs VALUES (?, ?) "
                "ON CONFLICT (part) DO UPDATE SET count = count + excluded.count",
                repaired.items(),
            )

    def repairs(self) -> dict[str, int]:
        """Return the repairs of this cache so far, by its part."""
        with self._lock:
            return dict(self._database.execute("SELECT part, count FROM repairs ORDER BY part").fetchall())

    def void(self, is_false: Callable[[str, Collection[str]], bool]) -> int:
        """Remove results, and return how many.

        Args:
            is_false: whether to remove one, given as JSON with the folders that it came from.
        """
        with self._lock:
            found = self._database.execute(
                "SELECT number, result, folders FROM kept_results LEFT JOIN origins USING (number)"
            ).fetchall()
            origins = [json.loads(folders or "[]") for _, _, folders in found]
            false = [
                (number,)
                for (number, text, _), folders in zip(found, origins, strict=True)
                if is_false(text, folders)
            ]
            self._database.executemany("DELETE FROM kept_results WHERE number = ?", false)
        return len(false)

    def _prune(self) -> None:
        """Remove the oldest results until the others take at most three quarters of the limit."""
        (total_bytes,) = self._database.execute("SELECT SUM(size_bytes) FROM kept_results").fetchone()
        if total_bytes <= self._limit_bytes:
            return
        self._database.execute(
            "DELETE FROM kept_results WHERE number <= (SELECT MAX(number) FROM (SELECT number, "
            "SUM(size_bytes) OVER (ORDER BY number DESC) AS newer_bytes FROM kept_results) "
            "WHERE newer_bytes > ?)",
            (self._limit_bytes * 3 // 4,),
        )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()


def recorded_results(database: sqlite3.Connection) -> Iterator[str]:
    """Yield the results of a store as JSON, oldest first."""
    for (text,) in database.execute("SELECT result FROM kept_results ORDER BY number"):
        yield text


def recent_seconds(path: Path, backend: str, count: int) -> list[PhaseSeconds]:
    """Return what the last evaluations took that a backend completed, newest first; none without a store.

    Args:
        path: database file, which is only read.
        backend: name of the backend.
        count: maximum number of results to look at.
    """
    if not path.is_file():
        return []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        rows = database.execute(
            "SELECT json_extract(result, '$.seconds') FROM kept_results "
            "WHERE json_extract(result, '$.status') = 'ok' AND json_extract(result, '$.device.backend') = ? "
            "ORDER BY number DESC LIMIT ?",
            (backend, count),
        )
        return [PhaseSeconds.model_validate_json(text) for (text,) in rows]


def is_storable(result: EvalResult) -> bool:
    """Whether a result is determined by its request, and not by the caller's or this host's faults."""
    return rule_of(result.status).blame not in (Blame.CALLER, Blame.INFRASTRUCTURE)
