"""Reads the journal and timings of a run folder into records of the results store."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ascend_gym.core.append_log import canonical_json, read_log
from ascend_gym.core.best import becomes_best
from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError, OperatorFormatError, OperatorNotFoundError
from ascend_gym.core.records import OpSpec
from ascend_gym.core.status import RewardRule, Status, rule_of
from ascend_gym.search.journal import JOURNAL_NAME, TIMINGS_NAME, read_journal
from ascend_gym.search.llm import OFFLINE_MODEL
from ascend_gym.search.llm.metering import Price
from ascend_gym.search.search_rules import Duplicates
from ascend_gym.suite.loader import load_operator
from ascend_gym.sweep.run_folders import read_sessions
from ascend_gym.sweep.run_records import (
    EvaluationRecord,
    OperatorRecord,
    RunRecord,
    SourceRecord,
    StoredRun,
    packed,
)

Record = Mapping[str, Any]

_PIPE_TIME = re.compile(r"ai[cv]_\w+_time")
_PHASES = ("queue", "build", "run", "verify", "price", "total")


def read_run(folder: Path, *, variant: str | None = None, operators: Operators | None = None) -> StoredRun:
    """Read the run in ``folder``, finished or not.

    Args:
        folder: folder of the run.
        variant: name of the method with its settings; by default the plain method name.
        operators: looks operators up, and caches them.

    Raises:
        MisuseError: there is no journal, or it was modified or damaged.
    """
    records = read_journal(folder)
    if not records:
        raise MisuseError(f"{folder}: there is no run: expected a folder with {JOURNAL_NAME}")
    timings_path = folder / TIMINGS_NAME
    timings = read_log(timings_path) if timings_path.exists() else []
    source = f"{socket.gethostname()}:{folder.resolve()}"
    try:
        stored = _stored(records, timings, variant, source)
    except (KeyError, TypeError, ValueError) as error:
        raise MisuseError(f"{folder}: the journal is not of this version ({error!r})") from error
    spec = (operators or Operators()).known_as(stored.run)
    return StoredRun(
        stored.run,
        stored.evaluations,
        stored.sources if spec is None else (_baseline_source(spec), *stored.sources),
        read_sessions(folder, stored.run.run_id),
        None if spec is None else _operator_record(spec),
    )


@dataclass
class Operators:
    """Cache of installed operators by id; ``None`` for operators that are not installed."""

    _specs: dict[str, OpSpec | None] = field(default_factory=dict)

    def known_as(self, run: RunRecord) -> OpSpec | None:
        """Return the operator of a run if it is installed here and unchanged; else ``None``."""
        if run.op_id not in self._specs:
            self._specs[run.op_id] = _loaded(run.op_id)
        spec = self._specs[run.op_id]
        same = spec is not None and spec.folder_digest == run.folder_digest
        return spec if same else None


def _loaded(op_id: str) -> OpSpec | None:
    try:
        return load_operator(op_id)
    except (MisuseError, OperatorNotFoundError, OperatorFormatError):  # one of a folder elsewhere
        return None


def _operator_record(spec: OpSpec) -> OperatorRecord:
    return OperatorRecord(
        spec.op_id, spec.folder_digest, spec.op_type, spec.level, spec.category, len(spec.cases)
    )


def _baseline_source(spec: OpSpec) -> SourceRecord:
    digest = spec.baseline.digest
    return SourceRecord(digest, digest, packed(spec.baseline.texts))


def _stored(
    records: Sequence[Record], timings: Sequence[Record], variant: str | None, source: str
) -> StoredRun:
    header, *rest = records
    breaks = [
        {"after": _evaluated_before(rest, at), **each["measured_by"]}
        for at, each in enumerate(rest)
        if each["kind"] == "continued"
    ]
    rest = [each for each in rest if each["kind"] != "continued"]
    end = rest.pop() if rest and rest[-1]["kind"] == "end" else None
    pairs = list(zip(rest[::2], rest[1::2], strict=False))
    if end is None and len(pairs) == 1 and _says_nothing(pairs[0][1]):
        pairs = []  # a resumed run evaluates its baseline again
    reader = _EvaluationReader(header)
    evaluations = tuple(
        reader.evaluation(proposal, result, timings[number] if number < len(timings) else {})
        for number, (proposal, result) in enumerate(pairs)
    )
    settings = {**header["settings"], "measured_by": header.get("measured_by")}
    settings |= {"breaks": breaks} if breaks else {}
    header = {**header, "settings": settings}
    run = _run_record(header, evaluations, end, variant, source, unwritten=reader.unwritten)
    return StoredRun(run, evaluations, tuple(_sources(header, [proposal for proposal, _ in pairs])))


def _evaluated_before(records: Sequence[Record], at: int) -> int:
    return sum(each["kind"] == "result" for each in records[:at])


def _says_nothing(result: Record) -> bool:
    return rule_of(Status(result["result"]["status"])).reward is RewardRule.NEUTRAL


def _sources(header: Record, proposals: Sequence[Record]) -> Iterator[SourceRecord]:
    baseline = header["baseline_digest"]
    texts = {each["candidate_digest"]: each["changed_files"] for each in proposals}
    for digest, files in texts.items():
        if digest != baseline:
            yield SourceRecord(baseline, digest, packed(files))


def _run_record(
    header: Record,
    evaluations: Sequence[EvaluationRecord],
    end: Record | None,
    variant: str | None,
    source: str,
    *,
    unwritten: bool,
) -> RunRecord:
    settings = header["settings"]
    last = evaluations[-1] if evaluations else None
    improvements = (each for each in reversed(evaluations) if each.improved)
    best = None if unwritten else next(improvements, None)
    return RunRecord(
        run_id=header["digest"],
        op_id=header["op_id"],
        folder_digest=header["folder_digest"],
        baseline_digest=header["baseline_digest"],
        method=settings["method"],
        variant=variant or settings["method"],
        model=settings["model"],
        seed=settings["seed"],
        budget=settings["budget"],
        chip=settings["protocol"]["chip"],
        protocol_digest=digest_of("protocol", canonical_json(settings["protocol"])),
        settings=canonical_json(settings),
        steps=len(evaluations),
        evaluations=last.spent_evaluations if last else 0,
        baseline_latency_us=evaluations[0].latency_us if evaluations else None,
        best_latency_us=best.latency_us if best else None,
        best_digest=best.candidate_digest if best else None,
        stop_reason=end["stop_reason"] if end else None,
        message=end["message"] if end else "",
        last_digest=(end or header)["digest"] if end or not last else last.chain_digest,
        source=source,
    )


def _is_price_of_calls(result: Record) -> bool:
    """Say whether a baseline is the price of framework calls, in which no pipe has a time."""
    profiles = [case["profile"] for case in result["result"]["cases"] if case["profile"]]
    times = [value for each in profiles for name, value in each.items() if _PIPE_TIME.fullmatch(name)]
    return bool(times) and not any(times)


class _EvaluationReader:
    """Converts pairs of journal records into evaluations, and tracks the budget spent and the best.

    Attributes:
        unwritten: whether the operator has no sources and no candidate was correct so far.
    """

    def __init__(self, header: Record) -> None:
        settings = header["settings"]
        self._run_id = header["digest"]
        self._free_duplicates = settings["duplicates"] == Duplicates.FREE.value
        self._price = Price.parsed(settings["price"]) if settings.get("price") else Price()
        self._spent = 0
        self._best_us: float | None = None
        self._baseline_digest = header["baseline_digest"]
        self.unwritten = False

    def evaluation(self, proposal: Record, result: Record, timing: Record) -> EvaluationRecord:
        if proposal["index"] != result["index"]:
            raise ValueError(f"proposal {proposal['index']} is followed by result {result['index']}")
        duplicate_of, latency_us = proposal.get("duplicate_of"), result["latency_us"]
        charged = self._charge(proposal["index"], result["result"]["status"], duplicate_of is not None)
        improved = becomes_best(latency_us, self._best_us, unwritten=self.unwritten)
        self._best_us = latency_us if improved else self._best_us
        if proposal["index"] == 0:
            self.unwritten = _is_price_of_calls(result)
        elif improved and proposal["candidate_digest"] != self._baseline_digest:
            self.unwritten = False
        return EvaluationRecord(
            run_id=self._run_id,
            idx=proposal["index"],
            candidate_digest=proposal["candidate_digest"],
            kind=proposal["origin"].get("kind", ""),
            stage=proposal["origin"].get("stage"),
            status=result["result"]["status"],
            latency_us=latency_us,
            charged=int(charged),
            spent_evaluations=self._spent,
            improved=int(improved),
            best_latency_us=self._best_us,
            duplicate_of=duplicate_of,
            chain_digest=result["digest"],
            origin=canonical_json(proposal["origin"]),
            detail=None if duplicate_of is not None else packed(result["result"]),
            **self._asked(proposal["origin"].get("calls", [])),
            **_timed(timing),
        )

    def _charge(self, index: int, status: str, duplicate: bool) -> bool:
        free = duplicate and self._free_duplicates
        charged = index > 0 and rule_of(Status(status)).charged and not free
        self._spent += charged
        return charged

    def _asked(self, calls: Sequence[Record]) -> dict[str, Any]:
        paid = [call for call in calls if call["model"] != OFFLINE_MODEL]
        return {
            "model_calls": len(calls),
            "prompt_tokens": sum(call["prompt_tokens"] for call in calls),
            "completion_tokens": sum(call["completion_tokens"] for call in calls),
            "usd": sum(
                self._price.cost(
                    call["prompt_tokens"], call["completion_tokens"], call.get("cached_tokens", 0)
                ).usd
                for call in paid
            ),
        }


def _timed(timing: Record) -> dict[str, Any]:
    """Return the fields of a timing record; all times are 0 for a run without timings."""
    device = timing.get("device") or {}
    seconds = timing.get("seconds", {})
    return {
        "usable": int(timing.get("evaluated", True)),
        "cached": int(timing.get("cached", False)),
        "device_seconds": timing.get("device_seconds", 0.0),
        **{f"{phase}_s": seconds.get(phase, 0.0) for phase in _PHASES},
        **{name: device.get(name) for name in ("host", "backend", "toolchain_digest", "sandbox")},
    }


def settings_of(run: RunRecord) -> dict[str, Any]:
    """Return the parsed settings of a run."""
    settings: dict[str, Any] = json.loads(run.settings)
    return settings
