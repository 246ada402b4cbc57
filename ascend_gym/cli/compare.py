"""``ascend-gym compare`` and ``ascend-gym leaderboard``: comparisons of methods from stored runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ascend_gym.cli.options import Json, console, methods_beginning
from ascend_gym.cli.results import STORE_NAME, Store
from ascend_gym.core.errors import MisuseError
from ascend_gym.report.run_folder import RUNS
from ascend_gym.report.summary import to_json
from ascend_gym.suite.loader import list_operators
from ascend_gym.sweep.run_records import RunRecord
from ascend_gym.sweep.store import ResultsStore


def compare(
    one: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="Method or variant, as 'runs list' shows it.",
            autocompletion=methods_beginning,
        ),
    ],
    other: Annotated[
        str,
        typer.Argument(
            metavar="B", help="Method or variant to compare A with.", autocompletion=methods_beginning
        ),
    ],
    store: Store = RUNS / STORE_NAME,
    other_store: Annotated[
        Path | None, typer.Option(metavar="FILE", exists=True, help="Store of B, if different.")
    ] = None,
    budget: Annotated[int | None, typer.Option(help="Only runs with this budget.")] = None,
    at: Annotated[
        int | None, typer.Option(min=1, help="Compare after this many evaluations; default the budget.")
    ] = None,
    chip: Annotated[str | None, typer.Option(help="Only runs for this chip.")] = None,
    model: Annotated[str | None, typer.Option(help="Only runs with this model.")] = None,
    as_json: Json = False,
) -> None:
    """Compare two methods operator by operator, with a paired test of significance."""
    from ascend_gym.report.leaderboard import paired_comparison, paired_table
    from ascend_gym.report.stored_runs import comparison_runs
    from ascend_gym.report.sweep_summary import print_table

    with ResultsStore(store) as results, ResultsStore(other_store or store) as others:
        found = _runs_of(results, one, budget, chip, model)
        against = _runs_of(others, other, found[0].budget, found[0].chip, model)
        document = paired_comparison(
            comparison_runs(results, found), comparison_runs(others, against), at or found[0].budget
        )
    if as_json:
        typer.echo(to_json({"one": one, "other": other, **document}))
    else:
        print_table(console(), paired_table(document, one, other))


def leaderboard(
    suite: Annotated[str, typer.Option(help="Suite.")] = "core",
    store: Store = RUNS / STORE_NAME,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="JSON file to write.")] = None,
) -> None:
    """Rank the stored methods on a suite (JSON), each with the command that reproduces its row."""
    from ascend_gym.report import leaderboard as board

    operators = [spec.op_id for spec in list_operators(suite)]
    with ResultsStore(store) as results:
        text = to_json(board.leaderboard(results, suite, operators))
    if out is None:
        typer.echo(text)
        return
    try:
        out.write_text(f"{text}\n", "utf-8")
    except OSError as error:
        raise MisuseError(f"{out} cannot be written: {error}") from error


def _runs_of(
    store: ResultsStore, variant: str, budget: int | None, chip: str | None, model: str | None
) -> list[RunRecord]:
    """Return the runs of a method with one budget, one chip and one model.

    Raises:
        MisuseError: there are none, or they differ in budget, chip or model.
    """
    found = [
        run
        for run in store.runs(variant=variant, chip=chip)
        if budget in (None, run.budget) and model in (None, run.model)
    ]
    kinds = sorted({(run.budget, run.chip, run.model) for run in found})
    if len(kinds) == 1:
        return found
    if not kinds:
        known = ", ".join(sorted({run.variant for run in store.runs()})) or "none"
        raise MisuseError(f"{store.path}: no such runs of {variant!r}; methods with runs: {known}")
    raise MisuseError(
        f"{variant!r} has runs of several kinds; choose by --budget, --chip and --model among "
        + "; ".join(f"{budget} {chip} {model}" for budget, chip, model in kinds)
    )
