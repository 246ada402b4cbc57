"""What a sweep has found: tables and one JSON document, read from its results store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from ascend_gym.report.comparison import Comparison, Table
from ascend_gym.report.metrics import BUDGETS
from ascend_gym.report.stored_runs import comparison_runs
from ascend_gym.sweep.run_records import RunRecord
from ascend_gym.sweep.store import ResultsStore

_TABLE_WIDTH_CHARS = 180


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
    """Return the tables of all comparisons."""
    return [
        Table(f"{chip}. {table.title}", table.columns, table.rows)
        for (chip, budget), comparison in compared.items()
        for table in comparison.tables(budgets_up_to(budget))
    ]


def summary_document(compared: Mapping[tuple[str, int], Comparison]) -> list[dict[str, Any]]:
    """Return all comparisons as JSON values."""
    return [
        {"chip": chip, "budget": budget, **comparison.as_json(budgets_up_to(budget))}
        for (chip, budget), comparison in compared.items()
    ]


def print_table(console: Console, table: Table) -> None:
    """Print a table; wide where nobody looks at a terminal."""
    if not console.is_terminal:
        console.width = _TABLE_WIDTH_CHARS
    drawn = RichTable(title=table.title, title_justify="left")
    for number, column in enumerate(table.columns):
        drawn.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in table.rows:
        drawn.add_row(*row)
    console.print(drawn)
