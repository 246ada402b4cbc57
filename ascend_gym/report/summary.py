"""Summaries of evaluations and searches as plain JSON-able values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ascend_gym.core.best import speedup
from ascend_gym.core.records import CaseResult, EvalResult, OpSpec
from ascend_gym.core.status import Status
from ascend_gym.search.outcome import SearchOutcome
from ascend_gym.suite.loader import split_of

NO_CORRECT_CANDIDATE = "no correct candidate"
DIFF_NAME = "best.diff"


def evaluation_summary(spec: OpSpec, result: EvalResult, baseline: EvalResult) -> dict[str, Any]:
    """Summarise an evaluation and, for comparison, that of the operator's own sources on the same cases.

    Latencies are geometric means over the cases in microseconds, ``None`` if not measured.
    """
    return {
        "operator": spec.op_id,
        "status": result.status.value,
        "correct": result.status is Status.OK,
        "latency_us": result.latency_us,
        "baseline_latency_us": baseline.latency_us,
        "speedup": speedup(baseline.latency_us, result.latency_us),
        "profile": result.mean_profile,
        "diagnostics": [_plain(diagnostic) for diagnostic in result.all_diagnostics],
        "seconds": _plain(result.seconds),
        "cases": [_case_summary(case, baseline) for case in result.cases],
        "candidate_digest": result.candidate_digest,
        "cached": result.cached,
        "device": _plain(result.device),
    }


def search_summary(
    outcome: SearchOutcome,
    settings: Mapping[str, Any],
    *,
    journal: Path,
    files: list[Path],
) -> dict[str, Any]:
    """Summarise a search.

    For an operator without sources, ``baseline_latency_us`` is the price of framework calls; as long as no
    candidate is correct, best latency and speedup are ``None``, and ``result`` says so.

    Args:
        outcome: outcome of the search.
        settings: settings of the run: method, model, budget, seed and so on.
        journal: journal file.
        files: written files of the best candidate.
    """
    return {
        "operator": outcome.spec.op_id,
        **settings,
        "evaluations": outcome.evaluations,
        "spent": asdict(outcome.spent),
        "baseline_latency_us": outcome.baseline_latency_us,
        "best_latency_us": outcome.best_latency_us,
        "speedup": outcome.speedup,
        **({"result": NO_CORRECT_CANDIDATE} if outcome.is_unwritten else {}),
        "best_digest": outcome.best.digest,
        "best_files": [str(path) for path in files],
        "statuses": _status_counts(outcome),
        "stop_reason": outcome.stop_reason.value,
        "message": outcome.message,
        "journal": str(journal),
    }


def operator_row(
    spec: OpSpec, *, baseline_us: float | None = None, floor_us: float | None = None
) -> dict[str, Any]:
    """Return the entry of an operator in a list of operators.

    Args:
        spec: operator.
        baseline_us: geometric mean of the cases' baseline latencies, if measured.
        floor_us: geometric mean of the cases' floors (lower bounds of the latency).
    """
    names = ("op_id", "op_type", "level", "category", "description")
    figures = {"baseline_us": baseline_us, "floor_us": floor_us}
    row = {name: getattr(spec, name) for name in names}
    return {**row, "split": split_of(spec.category), "cases": len(spec.cases), **figures}


def operator_document(spec: OpSpec) -> dict[str, Any]:
    """Return an operator with its cases and the paths of its files as JSON values, without the sources."""
    sides = {"tiling": spec.baseline.host, "kernel": spec.baseline.kernel}
    return {
        **{name: value for name, value in operator_row(spec).items() if not name.endswith("_us")},
        "folder": spec.folder,
        "folder_digest": spec.folder_digest,
        "auto_sync": spec.auto_sync,
        "sources": {name: [file.path for file in side.files] for name, side in sides.items()},
        "cases": [{**_plain(case), "traffic_bytes": case.traffic_bytes} for case in spec.cases],
    }


def to_json(summary: dict[str, Any]) -> str:
    """Return ``summary`` as one JSON document, readable by strict parsers (no NaN)."""
    return json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False)


def _case_summary(case: CaseResult, baseline: EvalResult) -> dict[str, Any]:
    baseline_us = {before.case_id: before.latency_us for before in baseline.cases}.get(case.case_id)
    return {
        "case_id": case.case_id,
        "status": case.status.value,
        "latency_us": case.latency_us,
        "baseline_latency_us": baseline_us,
        "speedup": speedup(baseline_us, case.latency_us),
        "launch": _plain(case.launch),
        "profile": _plain(case.profile),
        "accuracy": _plain(case.accuracy),
        "diagnostics": [_plain(diagnostic) for diagnostic in case.diagnostics],
    }


def _status_counts(outcome: SearchOutcome) -> dict[str, int]:
    statuses = [step.result.status for step in outcome.history if step.index > 0]
    return {status.value: statuses.count(status) for status in Status if status in statuses}


def _plain(record: BaseModel | None) -> Any:
    """Return a record as JSON values; NaN and infinities become ``None``."""
    if record is None:
        return None
    return json.loads(record.model_dump_json(), parse_constant=lambda constant: None)
