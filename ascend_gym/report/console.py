"""Display of suites, evaluations and searches in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ascend_gym.core.records import Case, MeasureProtocol, OpSpec, TensorSpec
from ascend_gym.core.status import RewardRule, Status, rule_of
from ascend_gym.report.summary import DIFF_NAME, NO_CORRECT_CANDIDATE
from ascend_gym.search.outcome import SearchOutcome, Step

_STYLES = {RewardRule.MEASURED: "green", RewardRule.FAILURE: "red", RewardRule.NEUTRAL: "yellow"}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_MAX_LINE_CHARS = 160
_MAX_DIFF_LINES = 120
_SHORTEST_DESCRIPTION = 8  # characters


class SearchView:
    """A progress bar with one line above it for each evaluation; use as a context manager.

    Args:
        console: output.
        budget: number of evaluations.
        spec: operator.
    """

    def __init__(self, console: Console, budget: int, spec: OpSpec) -> None:
        self._baseline, self._unwritten = _baseline_name(spec), not spec.has_sources
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console)
        self._task = self._progress.add_task("evaluating the baseline", total=budget)

    def __enter__(self) -> SearchView:
        self._progress.reset(self._task)
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, step: Step) -> None:
        """Show one evaluation."""
        self._progress.console.print(step_line(step, self._baseline))
        self._unwritten = self._unwritten and not step.first_correct
        best = "no baseline" if step.best_latency_us is None else f"best {step.best_latency_us:.2f} us"
        if self._unwritten:
            best = NO_CORRECT_CANDIDATE
        self._progress.update(self._task, description=best, completed=step.spent.evaluations)


def step_line(step: Step, baseline: str = "baseline") -> Text:
    """Return the line of one evaluation: number, status, latency, and remarks.

    Args:
        step: the evaluation.
        baseline: what the baseline is called.
    """
    name = baseline if step.index == 0 else f"{step.index:>{len(baseline)}}"
    line = Text(f"{name}  ").append(f"{step.result.status.value:<14}", _style(step.result.status))
    latency_us = step.result.latency_us
    if latency_us is None:
        return line.append(_one_line(str(step.result.all_diagnostics[0])))
    line.append(f"{latency_us:>12.2f} us")
    if not step.improved or step.index == 0:
        return line
    return line.append("  first correct" if step.first_correct else "  new best", "bold green")


def print_search(console: Console, outcome: SearchOutcome, diff: str, journal: Path, chip: str) -> None:
    """Print the outcome of a search, the diff of the best candidate and the path of the journal.

    Args:
        console: output.
        outcome: outcome of the search.
        diff: unified diff from the baseline to the best candidate.
        journal: journal file; the whole diff is beside it.
        chip: chip whose cycles were counted.
    """
    lines = diff.split("\n")[:-1]
    for line in lines[:_MAX_DIFF_LINES]:
        console.print(Text(line, _DIFF_STYLES.get(line[:1], "default")), soft_wrap=True)
    if len(lines) > _MAX_DIFF_LINES:
        rest = f"... {len(lines) - _MAX_DIFF_LINES} more lines in {journal.with_name(DIFF_NAME)}"
        console.print(Text(rest), soft_wrap=True)
    rows = {
        "operator": outcome.spec.op_id,
        **_chip_row(chip),
        "evaluations": str(outcome.evaluations),
        _baseline_name(outcome.spec): _latency(outcome.baseline_latency_us),
        "best": _latency(outcome.best_latency_us),
        "speedup": _speedup(outcome.speedup),
        **({"result": NO_CORRECT_CANDIDATE} if outcome.is_unwritten else {}),
        "journal": str(journal),
    }
    if outcome.message:
        rows["stopped"] = outcome.message
    _print_pairs(console, rows)


def print_evaluation(
    console: Console, summary: dict[str, Any], diagnostics: Sequence[object], chip: str
) -> None:
    """Print an ``evaluation_summary``, the diagnostics, and the chip unless it is the default."""
    seconds = summary["seconds"]
    _print_pairs(
        console,
        {
            "operator": summary["operator"],
            **_chip_row(chip),
            "status": summary["status"],
            "latency": _latency(summary["latency_us"]),
            "baseline": _latency(summary["baseline_latency_us"]),
            "speedup": _speedup(summary["speedup"]),
            "seconds": ", ".join(f"{name} {value:.2f}" for name, value in seconds.items())
            + (" (from the cache)" if summary["cached"] else ""),
        },
    )
    table = Table("case", "status", "latency", "baseline", "speedup", "block dim", box=None)
    for case in summary["cases"]:
        launch = case["launch"] or {}
        table.add_row(
            case["case_id"],
            case["status"],
            _latency(case["latency_us"]),
            _latency(case["baseline_latency_us"]),
            _speedup(case["speedup"]),
            str(launch.get("block_dim", "-")),
        )
    if summary["cases"]:
        console.print(table)
    for diagnostic in diagnostics:
        console.print(Text(str(diagnostic)))


def print_operators(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print one line per operator, from ``operator_row``."""
    cells = {
        "operator": [row["op_id"] for row in rows],
        "level": [str(row["level"]) for row in rows],
        "category": [row["category"] for row in rows],
        "cases": [str(row["cases"]) for row in rows],
        "baseline": [_latency(row["baseline_us"]) for row in rows],
        "floor": [_latency(row["floor_us"]) for row in rows],
    }
    if all(row["baseline_us"] is None for row in rows):
        del cells["baseline"]
    table = Table(*cells, "description", box=None)
    table.columns[0].overflow = "fold"
    taken = sum(2 + max(map(len, (name, *column))) for name, column in cells.items()) + 2
    left = max(console.width - taken, _SHORTEST_DESCRIPTION)  # 'suite show' has it whole
    for *row_cells, description in zip(*cells.values(), (row["description"] for row in rows), strict=True):
        text = Text(description)
        text.truncate(left, overflow="ellipsis")
        table.add_row(*row_cells, text)
    console.print(table)


def print_operator(console: Console, spec: OpSpec) -> None:
    """Print an operator with its cases and source files."""
    _print_pairs(
        console,
        {
            "operator": f"{spec.op_id} ({spec.op_type})",
            "description": spec.description,
            "level": f"{spec.level}, {spec.category}",
            "folder": spec.folder,
            "sources": ", ".join(spec.baseline.texts),
        },
    )
    table = Table("case", "inputs", "outputs", "attributes", "traffic", box=None)
    for case in spec.cases:
        table.add_row(*_case_row(case))
    console.print(table)


def print_check(console: Console, name: str, complaints: Sequence[str], warnings: Sequence[str] = ()) -> None:
    """Print one check of a validation, its complaints and its warnings."""
    verdict = Text("failed  ", "red") if complaints else Text("passed  ", "green")
    console.print(verdict.append(name, "default"), soft_wrap=True)
    for complaint in complaints:
        console.print(Text(f"        {complaint}"))
    for warning in warnings:
        console.print(Text(f"        warning: {warning}"))


def _case_row(case: Case) -> tuple[str, ...]:
    attributes = ", ".join(f"{name}={value}" for name, value in case.attributes.items())
    inputs, outputs = (", ".join(map(_tensor, side)) for side in (case.inputs, case.outputs))
    return case.case_id, inputs, outputs, attributes, f"{case.traffic_bytes / 2**20:.1f} MiB"


def _tensor(tensor: TensorSpec) -> str:
    shape = "x".join(map(str, tensor.shapes[0])) if tensor.shapes else ""
    count = f" and {len(tensor.shapes) - 1} more" if len(tensor.shapes) > 1 else ""
    return f"{tensor.name} {tensor.dtype.value} {shape}{count}"


def _print_pairs(console: Console, rows: dict[str, str]) -> None:
    width = max(map(len, rows)) + 2
    for name, value in rows.items():
        console.print(Text(name.ljust(width), "bold").append(value, "not bold"), soft_wrap=True)


def _baseline_name(spec: OpSpec) -> str:
    return "baseline" if spec.has_sources else "eager model"


def _chip_row(chip: str) -> dict[str, str]:
    return {} if chip == MeasureProtocol().chip else {"chip": chip}


def _latency(latency_us: float | None) -> str:
    return "-" if latency_us is None else f"{latency_us:.2f} us"


def _speedup(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}x"


def _style(status: Status) -> str:
    return _STYLES[rule_of(status).reward]


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_LINE_CHARS else f"{line[: _MAX_LINE_CHARS - 3]}..."
