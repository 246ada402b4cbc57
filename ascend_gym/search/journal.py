"""The journal of a search: what was asked and answered, in the order that decides the outcome.

Two files in one folder. ``journal.jsonl`` holds what follows from operator, method, model and seed alone:
the same run gives the same bytes, whatever the machine's speed and the number of evaluations in flight.
``timings.jsonl`` holds what does not: wall seconds, device seconds, hosts, cache hits.

Kinds of record, in this order: one ``header``; for each evaluation a ``proposal`` and its ``result`` (index 0
is the baseline); one ``end``. Each carries the digest of itself and of the record before it, so that a
changed or missing line is noticed. The header says what measures (``measured_by``: chip, convention,
harness, toolchain). A run that goes on with another simulator or harness, which has to be asked for, says so
in a record ``continued`` where it does.

A run that was broken off is resumed by replay: the same search runs again from its start, results that
were recorded are not evaluated a second time, and each record that it makes must equal the one on file.
An ``end`` is written only when there is nothing left to resume. Results that said nothing about their
candidates (the infrastructure failed) stay on record, except that of the baseline, without which there was no
search: it is evaluated again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ascend_gym.core.append_log import AppendLog, canonical_json, read_log
from ascend_gym.core.closing import Closing
from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Proposal
from ascend_gym.core.records import Candidate, EvalResult, OpSpec
from ascend_gym.core.status import RewardRule, rule_of
from ascend_gym.search.outcome import UnusableProposal

JOURNAL_VERSION = 2  # version 1 does not say what measured
JOURNAL_NAME = "journal.jsonl"
TIMINGS_NAME = "timings.jsonl"

_NOT_REPEATABLE: Any = {"seconds": True, "device": True, "cached": True, "charge": {"device_seconds"}}


class Journal(Closing):
    """Writes the journal of one search below a folder, and reads it back after a crash."""

    def __init__(self, folder: Path, *, across_versions: bool = False) -> None:
        """Open or create the journal in ``folder``.

        Args:
            folder: of the run.
            across_versions: whether a run may go on with another simulator or harness than it began with.

        Raises:
            MisuseError: the folder holds a journal that was changed or damaged before its last line, or one
                that another process writes.
        """
        self._log = AppendLog(folder / JOURNAL_NAME, alone=True)
        self._timings = AppendLog(folder / TIMINGS_NAME)
        try:
            _check_chain(self.path, self._log.records)
            self._results = _results_on_file(self._log, self._timings)
        except MisuseError:
            self.close()
            raise
        if set(self._results) == {0} and _says_nothing(self._results[0], self._log.records[-1]):
            self._results.clear()
            self._log.keep(1)
        self._timings.keep(len(self._results))
        self._written = 0
        self._last_digest = ""
        self._across_versions = across_versions
        self._break: dict[str, Any] | None = None

    @property
    def path(self) -> Path:
        """The journal file."""
        return self._log.path

    @property
    def records(self) -> list[dict[str, Any]]:
        """All records, in order."""
        return list(self._log.records)

    def recorded(self, index: int) -> EvalResult | None:
        """Return the result of evaluation ``index`` from before the run was broken off, or ``None``."""
        return self._results.get(index)

    def header(
        self, spec: OpSpec, settings: Mapping[str, Any], measured_by: Mapping[str, str] | None = None
    ) -> None:
        """Record what is searched, with which settings, and what measures; compare it with what is on file.

        Raises:
            MisuseError: the run on file is another one, or was measured by something else; each difference
                is named.
        """
        header = {
            "version": JOURNAL_VERSION,
            "op_id": spec.op_id,
            "folder_digest": spec.folder_digest,
            "baseline_digest": spec.baseline.digest,
            "settings": dict(settings),
            "measured_by": dict(measured_by or {}),
        }
        if self._log.records:
            self._take_up(header)
        if not self._log.records:
            self._append("header", **header)

    def _take_up(self, header: dict[str, Any]) -> None:
        """Begin where the run on file began."""
        began = self._log.records[0]
        names = ("op_id", "folder_digest", "baseline_digest", "settings")
        changed = _changes({name: began.get(name) for name in names}, {name: header[name] for name in names})
        if changed:
            raise MisuseError(
                f"{self.path}: the run began with other settings: {'; '.join(changed)}. Begin a run in a "
                "folder of its own, or put back what changed"
            )
        last = [each for each in self._log.records if each["kind"] in ("header", "continued")][-1]
        measured = _changes(last.get("measured_by"), header["measured_by"])
        if measured and not self._results:
            self._log.keep(0)  # nothing was measured yet
            return
        if measured and self._log.records[-1]["kind"] != "end":
            if not self._across_versions:
                raise MisuseError(
                    f"{self.path}: what is on file was measured otherwise: {'; '.join(measured)}. Resume "
                    "with what began the run, begin one in a folder of its own, or mix the two with "
                    "--across-versions, which the journal will say"
                )
            self._break = header["measured_by"]
        self._written, self._last_digest = 1, began["digest"]

    def evaluated(
        self,
        index: int,
        base: Candidate,
        proposal: Proposal,
        result: EvalResult,
        duplicate_of: int | None = None,
    ) -> None:
        """Record a proposal and its result.

        Args:
            index: number of the proposal; 0 is the baseline.
            base: the operator's own sources; only files that differ from theirs are written out.
            proposal: what was evaluated.
            result: how it ended.
            duplicate_of: the earlier proposal of the same candidate whose result this is, if there was one.

        Raises:
            MisuseError: a resumed search came to something else than what is on file.
        """
        self._append(
            "proposal",
            index=index,
            candidate_digest=proposal.candidate.digest,
            changed_files=changed_files(base, proposal.candidate),
            origin=dict(proposal.origin),
            **({} if duplicate_of is None else {"duplicate_of": duplicate_of}),
        )
        if index not in self._results:
            self._timings.append(_timing(index, proposal, result))
        as_json = result.model_dump_json(exclude=_NOT_REPEATABLE)
        repeatable = json.loads(as_json, parse_constant=str)  # JSON has no NaN and no infinity
        self._append("result", index=index, latency_us=result.latency_us, result=repeatable)

    def end(self, **summary: Any) -> None:
        """Record how the search ended."""
        self._append("end", **summary)

    def close(self) -> None:
        """Close both files."""
        self._log.close()
        self._timings.close()

    def _append(self, kind: str, **fields: Any) -> None:
        while self._written < len(self._log.records) and self._on_file["kind"] == "continued" != kind:
            self._written, self._last_digest = self._written + 1, self._on_file["digest"]
        if self._written == len(self._log.records) and self._break is not None:
            measured_by, self._break = self._break, None
            self._append("continued", measured_by=measured_by)
        record = {"kind": kind, "seq": self._written, **fields}
        record["digest"] = _chained(record, self._last_digest)
        if self._written == len(self._log.records):
            self._log.append(record)
        elif self._on_file["digest"] != record["digest"]:
            raise MisuseError(
                f"{self.path}:{self._written + 1}: the resumed run differs from what is on file in "
                f"{_difference(self._on_file, record)}: resume with the settings and "
                "the version that began it, or begin a run in a folder of its own"
            )
        self._written += 1
        self._last_digest = record["digest"]

    @property
    def _on_file(self) -> dict[str, Any]:
        """The record on file that the next one has to equal."""
        return self._log.records[self._written]


def read_journal(folder: Path) -> list[dict[str, Any]]:
    """Return the records of the journal in ``folder``, left as it is; none where there is no journal.

    Raises:
        MisuseError: the journal was changed or damaged before its last line.
    """
    path = folder / JOURNAL_NAME
    records = read_log(path) if path.exists() else []
    _check_chain(path, records, path.read_text("utf-8").split("\n") if records else [])
    return records


def changed_files(base: Candidate, candidate: Candidate) -> dict[str, str]:
    """Return the text of every file of ``candidate`` that differs from ``base``, by path."""
    before = base.texts
    return {path: text for path, text in candidate.texts.items() if before.get(path) != text}


def _chained(record: Mapping[str, Any], previous: str) -> str:
    body = {key: value for key, value in record.items() if key != "digest"}
    return digest_of("journal", previous, canonical_json(body))


def _follows(line: str, digest: object, previous: str) -> bool:
    """Say whether a line as it was written, its own digest taken out, has that digest."""
    body = line.replace(f'"digest":"{digest}",', "", 1)
    return digest_of("journal", previous, body) == digest


def _says_nothing(baseline: EvalResult, last: Mapping[str, Any]) -> bool:
    return last["kind"] != "end" and rule_of(baseline.status).reward is RewardRule.NEUTRAL


def _check_chain(path: Path, records: Sequence[Mapping[str, Any]], lines: Sequence[str] = ()) -> None:
    """Check that each record's digest follows from its content and the record before it.

    Args:
        path: the journal.
        records: its records.
        lines: their texts, where at hand: writing the records out again takes most of the time.

    Raises:
        MisuseError: one does not.
    """
    previous = ""
    for number, record in enumerate(records, 1):
        written = number <= len(lines) and _follows(lines[number - 1], record.get("digest"), previous)
        if not written and record.get("digest") != _chained(record, previous):
            raise MisuseError(f"{path}:{number}: the record does not match its digest; it was changed")
        previous = record["digest"]


def _timing(index: int, proposal: Proposal, result: EvalResult) -> dict[str, Any]:
    return {
        "index": index,
        "seconds": result.seconds.model_dump(),
        "device_seconds": result.charge.device_seconds,
        "device": result.device.model_dump() if result.device else None,
        "cached": result.cached,
        "evaluated": not isinstance(proposal, UnusableProposal),
    }


def _results_on_file(log: AppendLog, timings: AppendLog) -> dict[int, EvalResult]:
    """Return the recorded results by index, each put together again from its two halves.

    A timing is written before the result that it belongs to, so that no result is without one.
    """
    records = [record for record in log.records if record["kind"] == "result"]
    results = {}
    for number, (record, timing) in enumerate(zip(records, timings.records, strict=False), 1):
        try:
            results[record["index"]] = _put_together(record, timing)
        except (KeyError, TypeError, ValueError) as error:
            raise MisuseError(
                f"{timings.path}:{number}: damaged ({error!r}); remove the file, and its runs are timed again"
            ) from error
    return results


def _put_together(record: Mapping[str, Any], timing: Mapping[str, Any]) -> EvalResult:
    charge = {**record["result"]["charge"], "device_seconds": timing["device_seconds"]}
    rest = {name: timing[name] for name in ("seconds", "device", "cached")}
    whole = {**record["result"], **rest, "charge": charge}
    return EvalResult.model_validate_json(json.dumps(whole))


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Name the fields in which two records differ."""
    names = sorted(name for name in {*old, *new} - {"digest"} if old.get(name) != new.get(name))
    return ", ".join(names)


def _changes(then: Any, now: Any, name: str = "") -> list[str]:
    """Name each field that differs, with what it was and what it is; mappings are compared field by field."""
    if isinstance(now, dict) and isinstance(then, dict | None):
        then = then or {}
        names = sorted({*then, *now})
        return [each for key in names for each in _changes(then.get(key), now.get(key), key)]
    return [] if then == now else [f"{name} was {_shown(then)}, is {_shown(now)}"]


def _shown(value: Any) -> str:
    return "not recorded" if value is None else str(value)
