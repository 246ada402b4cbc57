"""The journal of a search: what was asked and answered, in the order that decides the outcome.

Two files in one folder. ``journal.jsonl`` holds what follows from operator, method, model and seed alone:
the same run gives the same bytes, whatever the machine's speed and the number of evaluations in flight.
``timings.jsonl`` holds what does not: wall seconds, device seconds, hosts, cache hits.

Kinds of record, in this order: one ``header``; for each evaluation a ``proposal`` and its ``result`` (index 0
is the baseline); one ``end``. Each carries the digest of itself and of the record before it, so that a
changed or missing line is noticed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Proposal
from ascend_gym.core.records import Candidate, EvalResult, OpSpec
from ascend_gym.search.append_log import AppendLog, canonical_json

JOURNAL_VERSION = 1
JOURNAL_NAME = "journal.jsonl"
TIMINGS_NAME = "timings.jsonl"

_NOT_REPEATABLE: Any = {"seconds": True, "device": True, "cached": True, "charge": {"device_seconds"}}


class Journal:
    """Writes the journal of one search below a folder, and reads it back after a crash."""

    def __init__(self, folder: Path) -> None:
        """Open or create the journal in ``folder``.

        Raises:
            MisuseError: the folder holds a journal that was changed or damaged before its last line.
        """
        self._log = AppendLog(folder / JOURNAL_NAME)
        self._timings = AppendLog(folder / TIMINGS_NAME)
        self._last_digest = _checked_chain(self._log)

    @property
    def path(self) -> Path:
        """The journal file."""
        return self._log.path

    @property
    def records(self) -> list[dict[str, Any]]:
        """All records, in order."""
        return list(self._log.records)

    def header(self, spec: OpSpec, settings: Mapping[str, Any]) -> None:
        """Record what is searched, and with which settings."""
        self._append(
            "header",
            version=JOURNAL_VERSION,
            op_id=spec.op_id,
            folder_digest=spec.folder_digest,
            baseline_digest=spec.baseline.digest,
            settings=dict(settings),
        )

    def evaluated(self, index: int, base: Candidate, proposal: Proposal, result: EvalResult) -> None:
        """Record a proposal and its result.

        Args:
            index: number of the proposal; 0 is the baseline.
            base: the operator's own sources; only files that differ from theirs are written out.
            proposal: what was evaluated.
            result: how it ended.
        """
        self._append(
            "proposal",
            index=index,
            candidate_digest=proposal.candidate.digest,
            changed_files=changed_files(base, proposal.candidate),
            origin=dict(proposal.origin),
        )
        as_json = result.model_dump_json(exclude=_NOT_REPEATABLE)
        repeatable = json.loads(as_json, parse_constant=lambda _: None)  # JSON has no NaN and no infinity
        self._append("result", index=index, latency_us=result.latency_us, result=repeatable)
        self._timings.append(
            {
                "index": index,
                "seconds": result.seconds.model_dump(),
                "device_seconds": result.charge.device_seconds,
                "device": result.device.model_dump() if result.device else None,
                "cached": result.cached,
            }
        )

    def end(self, **summary: Any) -> None:
        """Record how the search ended."""
        self._append("end", **summary)

    def close(self) -> None:
        """Close both files."""
        self._log.close()
        self._timings.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _append(self, kind: str, **fields: Any) -> None:
        record = {"kind": kind, "seq": len(self._log.records), **fields}
        record["digest"] = _chained(record, self._last_digest)
        self._log.append(record)
        self._last_digest = record["digest"]


def changed_files(base: Candidate, candidate: Candidate) -> dict[str, str]:
    """Return the text of every file of ``candidate`` that differs from ``base``, by path."""
    before = base.texts
    return {path: text for path, text in candidate.texts.items() if before.get(path) != text}


def _chained(record: Mapping[str, Any], previous: str) -> str:
    body = {key: value for key, value in record.items() if key != "digest"}
    return digest_of("journal", previous, canonical_json(body))


def _checked_chain(log: AppendLog) -> str:
    """Return the digest of the last record.

    Raises:
        MisuseError: a record's digest does not follow from its content and the record before it.
    """
    previous = ""
    for number, record in enumerate(log.records, 1):
        if record.get("digest") != _chained(record, previous):
            raise MisuseError(f"{log.path}:{number}: the record does not match its digest; it was changed")
        previous = record["digest"]
    return previous
