"""Descriptions of one or two stored runs, as JSON values and as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ascend_gym.report.comparison import Curve, Run
from ascend_gym.report.run_folder import unified_texts_diff
from ascend_gym.sweep.run_reader import settings_of
from ascend_gym.sweep.run_records import EvaluationRecord, RunRecord
from ascend_gym.sweep.store import ResultsStore

ID_CHARS = 12
_FILE_WIDTH_CHARS = 200

_SHOWN_CHARS = 24
_MEASURED_BY = ("harness", "toolchain")
_NOT_SHARED = {
    "operator",
    "op_dir",
    "seed",
    "chip_file",
    "model",
    "budget",
    "chip",
    "measured_by",
    "protocol",
}

_COLUMNS = ("run", "operator", "method", "model", "chip", "seed", "budget", "spent", "speedup", "ended")
_NUMBERS = ("seed", "budget", "spent", "speedup")


class Charged(Protocol):
    """The fields of an ``EvaluationRecord`` that a curve needs."""

    @property
    def charged(self) -> int:
        """Whether the evaluation was charged to the budget."""

    @property
    def best_latency_us(self) -> float | None:
        """Lowest latency of the run so far."""


def curve_of_run(run: RunRecord, evaluations: Iterable[Charged]) -> Curve:
    """Return the curve of the best latency of a run over its charged evaluations."""
    if run.baseline_latency_us is None:
        return Curve((), run.stop_reason)
    charged = [each.best_latency_us for each in evaluations if each.charged]
    best_us = [run.baseline_latency_us, *(best for best in charged if best is not None)]
    return Curve(tuple(best_us), run.stop_reason)


def shared_settings(run: RunRecord) -> dict[str, str]:
    """Return what runs of one method in one row of a table have in common, as texts by name.

    That is every setting but those by which runs of a sweep differ, and what measured them.
    """
    settings = settings_of(run)
    settings = {**settings, **(settings.get("measured_by") or {}), **settings.get("protocol", {})}
    return {
        name: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for name, value in settings.items()
        if name not in _NOT_SHARED and value is not None
    }


def method_names(runs: Sequence[RunRecord], told: Sequence[str] = ("model",)) -> dict[str, str]:
    """Return the name of each run's method in tables, by run id.

    It is the variant, with the attributes in ``told`` of which the runs have several, and with the
    settings in which runs of one such name differ: runs with different settings are of different methods.
    """
    several = [each for each in told if len({getattr(run, each) for run in runs}) > 1]
    added: dict[str, list[str]] = {}
    alike: dict[tuple[str, ...], list[RunRecord]] = {}
    for run in runs:
        words = [f"budget {run.budget}" if each == "budget" else str(getattr(run, each)) for each in several]
        added[run.run_id] = words
        alike.setdefault((run.variant, *words), []).append(run)
    for group in alike.values():
        settings = [shared_settings(run) for run in group]
        names = sorted({name for each in settings for name in each})
        differing = [name for name in names if len({each.get(name) for each in settings}) > 1]
        for run, each in zip(group, settings, strict=True):
            added[run.run_id] += [_told_setting(name, each.get(name)) for name in differing]
    return {
        run.run_id: f"{run.variant} ({', '.join(words)})" if (words := added[run.run_id]) else run.variant
        for run in runs
    }


def _told_setting(name: str, value: str | None) -> str:
    if value is None:
        return f"{name} {'not recorded' if name in _MEASURED_BY else 'default'}"
    return f"{name} {value[:_SHOWN_CHARS]}"


def comparison_runs(store: ResultsStore, runs: Sequence[RunRecord]) -> list[Run]:
    """Return stored runs as input of ``report.comparison``, named by ``method_names``.

    Unfinished ones have no curve.
    """
    names = method_names(runs)
    return [
        Run(
            names[run.run_id],
            run.op_id,
            run.seed,
            curve_of_run(run, store.evaluations(run.run_id)) if run.finished else None,
        )
        for run in runs
    ]


def run_row(run: RunRecord) -> dict[str, Any]:
    """Return the entry of a run in a list of runs."""
    row = asdict(run)
    del row["settings"]
    return {**row, "speedup": None if run.best_latency_us is None else run.speedup}


def run_document(store: ResultsStore, run: RunRecord) -> dict[str, Any]:
    """Return a description of a run as JSON values, without sources."""
    operator = store.operator(run)
    return {
        **run_row(run),
        "settings": settings_of(run),
        "operator": None if operator is None else asdict(operator),
        "statuses": dict(
            store.query("SELECT status, evaluations FROM statuses WHERE run_id = ?", [run.run_id])
        ),
        "costs": _one_row(store, "costs", run.run_id),
        "provenance": _one_row(store, "provenance", run.run_id),
        "sessions": [_session(asdict(each)) for each in store.sessions(run.run_id)],
        "incumbents": [_incumbent(run, each) for each in store.incumbents(run.run_id)],
        "best_diff": _diff(store, (run, run.baseline_digest), (run, run.best_digest or run.baseline_digest)),
    }


def run_differences(store: ResultsStore, one: RunRecord, other: RunRecord) -> dict[str, Any]:
    """Return the differences of two runs: pairs of values, and their best candidates as a diff."""
    before, after = run_document(store, one), run_document(store, other)
    for document in (before, after):
        for name in ("best_diff", "incumbents", "run_id", "last_digest", "source"):
            del document[name]
        document["sessions"] = _versions(document["sessions"])
    pairs = {name: (before[name], after[name]) for name in before if before[name] != after[name]}
    ends = [(run, run.best_digest or run.baseline_digest) for run in (one, other)]
    same_operator = one.baseline_digest == other.baseline_digest
    return {
        "runs": [one.run_id, other.run_id],
        "differences": _flat(pairs),
        "best_diff": _diff(store, *ends) if same_operator else None,
    }


def print_runs(console: Console, runs: Sequence[RunRecord]) -> None:
    """Print one line per run; lines are only fitted to the width of a terminal."""
    if not console.is_terminal:
        console.width = _FILE_WIDTH_CHARS
    table = Table(box=None)
    for column in _COLUMNS:
        table.add_column(column, justify="right" if column in _NUMBERS else "left", no_wrap=True)
    for run in runs:
        table.add_row(
            *(run.run_id[:ID_CHARS], run.op_id, run.variant, run.model, run.chip, str(run.seed)),
            *(
                str(run.budget),
                str(run.evaluations),
                "-" if run.best_latency_us is None else f"{run.speedup:.3f}x",
                run.stop_reason or "not finished",
            ),
        )
    console.print(table)


def print_run(console: Console, document: Mapping[str, Any]) -> None:
    """Print what ``run_document`` returns."""
    for name, value in document.items():
        if name not in ("incumbents", "sessions", "best_diff"):
            console.print(_pair(name, value), soft_wrap=True)
    for session in document["sessions"]:
        console.print(_pair("session", session), soft_wrap=True)
    table = Table("evaluation", "spent", "kind", "latency", "speedup", box=None)
    for each in document["incumbents"]:
        latency, speedup = f"{each['latency_us']:.2f} us", f"{each['speedup']:.3f}x"
        table.add_row(str(each["idx"]), str(each["spent_evaluations"]), each["kind"], latency, speedup)
    console.print(table)
    console.print(Text(document["best_diff"] or ""), soft_wrap=True)


def print_differences(console: Console, document: Mapping[str, Any]) -> None:
    """Print what ``run_differences`` returns."""
    for name, (before, after) in document["differences"].items():
        console.print(_pair(name, f"{_plain(before)} | {_plain(after)}"), soft_wrap=True)
    console.print(Text(document["best_diff"] or ""), soft_wrap=True)


def _one_row(store: ResultsStore, view: str, run_id: str) -> dict[str, Any]:
    """Return the row of a run in a view with one row per run; empty for a run without evaluations."""
    columns = [name for _, name, *_ in store.query(f"PRAGMA table_info({view})")]
    rows = list(store.query(f"SELECT * FROM {view} WHERE run_id = ?", [run_id]))
    return dict(zip(columns[1:], rows[0][1:], strict=True)) if rows else {}


def _session(session: dict[str, Any]) -> dict[str, Any]:
    packages, command = json.loads(session["packages"]), json.loads(session["command"])["command"]
    shown = {name: session[name] for name in ("started_at", "host", "code_digest", "prompts_digest")}
    return {**shown, "packages": packages, "command": command}


def _versions(sessions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the distinct parts of sessions that can affect an outcome."""
    names = ("code_digest", "prompts_digest", "packages")
    versions = [{name: session[name] for name in names} for session in sessions]
    return [each for at, each in enumerate(versions) if each not in versions[:at]]


def _incumbent(run: RunRecord, evaluation: EvaluationRecord) -> dict[str, Any]:
    names = ("idx", "spent_evaluations", "kind", "stage", "candidate_digest", "latency_us")
    assert evaluation.latency_us is not None, "only a measured candidate becomes the best"
    speedup = (run.baseline_latency_us or evaluation.latency_us) / evaluation.latency_us
    return {**{name: getattr(evaluation, name) for name in names}, "speedup": speedup}


def _diff(store: ResultsStore, before: tuple[RunRecord, str], after: tuple[RunRecord, str]) -> str | None:
    """Return the diff between two candidates of one operator; ``None`` without the operator's own files."""
    texts = [_texts(store, run, digest) for run, digest in (before, after)]
    if texts[0] is None or texts[1] is None:
        return None
    return unified_texts_diff(texts[0], texts[1])


def _texts(store: ResultsStore, run: RunRecord, candidate_digest: str) -> dict[str, str] | None:
    own = store.baseline_files(run)
    return None if own is None else {**own, **store.changed_files(run, candidate_digest)}


def _flat(pairs: Mapping[str, tuple[Any, Any]]) -> dict[str, tuple[Any, Any]]:
    """Resolve pairs of mappings into pairs of their values that differ."""
    flat: dict[str, tuple[Any, Any]] = {}
    for name, (before, after) in pairs.items():
        if not isinstance(before, dict) or not isinstance(after, dict):
            flat[name] = before, after
            continue
        keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        flat |= _flat({f"{name}.{key}": (before.get(key), after.get(key)) for key in keys})
    return flat


def _pair(name: str, value: Any) -> Text:
    return Text(name.ljust(22), "bold").append(_plain(value), "not bold")


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
