"""Results of a sweep as tables and one JSON document, read from its results store; what it cost in time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ascend_gym.core.append_log import read_log
from ascend_gym.report.comparison import Comparison, Table
from ascend_gym.report.metrics import BUDGETS
from ascend_gym.report.stored_runs import comparison_runs
from ascend_gym.search.journal import TIMINGS_NAME
from ascend_gym.sweep.run_records import RunRecord
from ascend_gym.sweep.store import ResultsStore

_TABLE_WIDTH_CHARS = 180
_GAP_CHARS = 3  # between two columns

PHASES = ("build", "run", "verify", "price")


def comparisons(store: ResultsStore, runs: Sequence[RunRecord]) -> dict[tuple[str, int], Comparison]:
    """Return a comparison of the methods for each chip and budget."""
    groups = dict.fromkeys((run.chip, run.budget) for run in runs)
    return {
        group: Comparison(comparison_runs(store, [run for run in runs if (run.chip, run.budget) == group]))
        for group in groups
    }


def budgets_up_to(budget: int) -> list[int]:
    """Return the budgets of the tables, the whole one last."""
    return sorted({each for each in BUDGETS if each < budget} | {budget})


def summary_tables(compared: Mapping[tuple[str, int], Comparison]) -> list[Table]:
    """Return the tables of all comparisons, except those without a finished run."""
    return [
        Table(f"{chip}. {table.title}", table.columns, table.rows)
        for (chip, budget), comparison in compared.items()
        for table in comparison.tables(budgets_up_to(budget))
    ]


def summary_notes(compared: Mapping[tuple[str, int], Comparison]) -> list[str]:
    """Return notes on how to read the tables, or why there are none."""
    if not any(comparison.operators for comparison in compared.values()):
        return ["No run is finished yet, so there is nothing to compare."]
    return [
        f"{chip}, budget {budget}: {said}"
        for (chip, budget), comparison in compared.items()
        for said in comparison.notes()
    ]


def summary_document(compared: Mapping[tuple[str, int], Comparison]) -> list[dict[str, Any]]:
    """Return all comparisons as JSON values."""
    return [
        {"chip": chip, "budget": budget, **comparison.as_json(budgets_up_to(budget))}
        for (chip, budget), comparison in compared.items()
    ]


def print_table(console: Console, table: Table) -> None:
    """Print a table; on a terminal in parts that fit its width, otherwise in full width.

    Each part has the first column and as many of the others as fit.
    """
    if not console.is_terminal:
        console.width = _TABLE_WIDTH_CHARS
    parts = _parts(table, console.width)
    for number, columns in enumerate(parts, start=1):
        title = table.title if len(parts) == 1 else f"{table.title} ({number} of {len(parts)})"
        drawn = RichTable(box=SIMPLE, pad_edge=False)
        for at in columns:
            drawn.add_column(table.columns[at], justify="right" if at else "left", no_wrap=True)
        for row in table.rows:
            drawn.add_row(*(row[at] for at in columns))
        console.print(Text(title, "bold"), soft_wrap=not console.is_terminal)
        console.print(drawn)


def _parts(table: Table, width_chars: int) -> list[list[int]]:
    """Return the columns of each part, the first column in all of them."""
    widths = [
        max(map(cell_len, cells)) + _GAP_CHARS for cells in zip(table.columns, *table.rows, strict=True)
    ]
    parts: list[list[int]] = []
    for at in range(1, len(widths)):
        if not parts or sum(widths[each] for each in (*parts[-1], at)) > width_chars:
            parts.append([0])
        parts[-1].append(at)
    return parts or [[0]]


@dataclass(frozen=True)
class Costs:
    """Cost of a set of evaluations.

    Attributes:
        evaluations: number of evaluations, including baselines.
        cached: number of those that were answered from a cache.
        phase_seconds: total seconds by phase of those that were measured.
        total_seconds: their total seconds, without waiting for a worker.
    """

    evaluations: int
    cached: int
    phase_seconds: Mapping[str, float]
    total_seconds: float

    @property
    def seconds_per_evaluation(self) -> float:
        """Mean seconds of a measured evaluation; 0 if there are none."""
        measured = self.evaluations - self.cached
        return self.total_seconds / measured if measured else 0.0

    @property
    def cached_share(self) -> float:
        """Share of evaluations answered from a cache; 0 if there are none."""
        return self.cached / self.evaluations if self.evaluations else 0.0


def read_costs(folders: Iterable[Path]) -> Costs:
    """Add up the evaluations of the runs in ``folders``, without answers that yielded no candidate.

    Raises:
        MisuseError: the timings of a run are damaged.
    """
    recorded = (record for folder in folders for record in _timings(folder))
    timings = [timing for timing in recorded if timing.get("evaluated", True)]
    measured = [timing["seconds"] for timing in timings if not timing["cached"]]
    return Costs(
        evaluations=len(timings),
        cached=len(timings) - len(measured),
        phase_seconds={phase: sum(seconds[phase] for seconds in measured) for phase in PHASES},
        total_seconds=sum(seconds["total"] - seconds["queue"] for seconds in measured),
    )


def costs_table(runs: Iterable[tuple[str, Path]]) -> Table:
    """Return one row for each method: how many evaluations, and where their seconds went.

    Args:
        runs: the method and the folder of each run.
    """
    folders = defaultdict(list)
    for method, folder in runs:
        folders[method].append(folder)
    costs = {method: read_costs(each) for method, each in folders.items()}
    columns = ("method", "evaluations", "known %", "s each", *(f"{phase} %" for phase in PHASES))
    rows = tuple((method, *_cost_cells(each)) for method, each in costs.items())
    return Table("Wall time of evaluations; known ones were measured before", columns, rows)


_MODEL_COSTS = """
SELECT runs.variant, COUNT(DISTINCT runs.run_id), SUM(charged), SUM(model_calls), SUM(prompt_tokens),
    SUM(completion_tokens), SUM(usd)
FROM evaluations JOIN runs USING (run_id) GROUP BY runs.variant ORDER BY runs.variant
"""


def model_costs_tables(store: ResultsStore) -> list[Table]:
    """Return what models cost, a row for each method; nothing where no tokens were counted.

    The last columns divide by what was gained: the sum over the runs of the base-2 logarithm of the speedup.
    """
    gained: dict[str, float] = defaultdict(float)
    for run in store.runs():
        gained[run.variant] += math.log2(run.speedup) if run.speedup else 0.0
    rows = []
    for variant, runs, evaluations, calls, read, written, usd in store.query(_MODEL_COSTS):
        tokens, doublings = read + written, gained[variant]
        each = (f"{tokens / doublings:.0f}", f"{usd / doublings:.3f}") if doublings > 0 else ("-", "-")
        of_evaluation = f"{tokens / evaluations:.0f}" if evaluations else "-"
        counts = (str(count) for count in (runs, calls, read, written))
        rows.append((variant, *counts, of_evaluation, f"{usd:.3f}", *each))
    columns = (
        "method",
        "runs",
        "questions",
        "tokens read",
        "written",
        "tokens an evaluation",
        "US dollars",
        "tokens a doubling",
        "US dollars a doubling",
    )
    has_tokens = any(int(row[3]) for row in rows)
    return [Table("What models cost", columns, tuple(rows))] if has_tokens else []


def _cost_cells(costs: Costs) -> tuple[str, ...]:
    shares = (costs.phase_seconds[phase] / (costs.total_seconds or 1.0) for phase in PHASES)
    return (
        str(costs.evaluations),
        f"{100 * costs.cached_share:.0f}",
        f"{costs.seconds_per_evaluation:.2f}",
        *(f"{100 * share:.0f}" for share in shares),
    )


def _timings(folder: Path) -> list[dict[str, Any]]:
    path = folder / TIMINGS_NAME
    return read_log(path) if path.exists() else []
