"""Content-addressed results in one SQLite file that several processes may share."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from pydantic import ValidationError

from ascend_gym.core.records import EvalResult, PhaseSeconds
from ascend_gym.core.status import Blame, rule_of

_BUSY_TIMEOUT_S = 10.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY,
    result TEXT NOT NULL
) WITHOUT ROWID
"""


class SqliteResultStore:
    """Remembers results by the digest of everything that changes the answer.

    Safe for several processes (write-ahead log) and several threads (one lock). Results that say nothing
    about the candidate, because the caller or the infrastructure was at fault, are never stored.

    Args:
        path: the database file; its folder is made.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._database = sqlite3.connect(
            path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.execute(_SCHEMA)

    def get(self, key: str) -> EvalResult | None:
        """Return the stored result marked as cached, or ``None``; an unreadable one counts as absent."""
        with self._lock:
            row = self._database.execute("SELECT result FROM results WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        try:
            stored = EvalResult.model_validate_json(row[0])
        except ValidationError:
            return None
        return stored.model_copy(update={"cached": True, "seconds": PhaseSeconds()})

    def put(self, key: str, result: EvalResult) -> None:
        """Store a result, unless it is one that must be found anew each time."""
        if not is_storable(result):
            return
        with self._lock:
            self._database.execute(
                "INSERT OR REPLACE INTO results VALUES (?, ?)", (key, result.model_dump_json())
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()


def is_storable(result: EvalResult) -> bool:
    """Whether a result is a property of its request, rather than of the caller or of this host's troubles."""
    return rule_of(result.status).blame not in (Blame.CALLER, Blame.INFRASTRUCTURE)
