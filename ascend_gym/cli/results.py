"""``ascend-gym runs``, ``compare`` and ``leaderboard``: stored runs, and comparisons of methods from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ascend_gym.cli.options import Json, console, methods_beginning, note
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.option_groups import grouped
from ascend_gym.report.run_folder import RUNS
from ascend_gym.report.summary import to_json
from ascend_gym.suite.loader import list_operators
from ascend_gym.sweep.merge import ExportFormat, Merged, export, import_runs, merge_stores, run_folders
from ascend_gym.sweep.run_records import RunRecord
from ascend_gym.sweep.store import ResultsStore

STORE_NAME = "results.sqlite"

Store = Annotated[Path, typer.Option(metavar="FILE", help="Results store.")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="The id of a run, or a prefix of it.")]

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Inspect, merge and export stored runs.")


@app.command("list")
def runs_list(
    store: Store = RUNS / STORE_NAME,
    op: Annotated[
        str | None, typer.Option("--op", "--operator", help="Only runs on this operator, such as core/gelu.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="Only runs of this method or variant.")] = None,
    seed: Annotated[int | None, typer.Option(help="Only runs with this seed.")] = None,
    as_json: Json = False,
) -> None:
    """List runs with their speedups."""
    from ascend_gym.report.stored_runs import print_runs, run_row

    with ResultsStore(store) as results:
        found = results.runs(op_id=op, variant=method, seed=seed)
    if as_json:
        typer.echo(to_json({"store": str(store), "runs": [run_row(run) for run in found]}))
    else:
        print_runs(console(), found)


@app.command("show")
def runs_show(run: RunName, store: Store = RUNS / STORE_NAME, as_json: Json = False) -> None:
    """Show a run: settings, provenance, statuses, costs, improvements, and the best candidate's diff."""
    from ascend_gym.report.stored_runs import print_run, run_document

    with ResultsStore(store) as results:
        document = run_document(results, results.run_named(run))
    if as_json:
        typer.echo(to_json(document))
    else:
        print_run(console(), document)


@app.command("diff")
def runs_diff(one: RunName, other: RunName, store: Store = RUNS / STORE_NAME, as_json: Json = False) -> None:
    """Compare two runs: settings, versions, outcome, costs, and their best candidates."""
    from ascend_gym.report.stored_runs import print_differences, run_differences

    with ResultsStore(store) as results:
        document = run_differences(results, results.run_named(one), results.run_named(other))
    if as_json:
        typer.echo(to_json(document))
    else:
        print_differences(console(), document)


@app.command("import")
def runs_import(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...", exists=True, file_okay=False, help="Folder of a run, or one above several."
        ),
    ],
    store: Store = RUNS / STORE_NAME,
) -> None:
    """Import run folders, finished or not, and all below them, into a store."""
    with ResultsStore(store, write=True) as results:
        _tell(import_runs(results, run_folders(folders), variant_in), store)


@app.command("merge")
def runs_merge(
    others: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", exists=True, dir_okay=False, help="Results store to read."),
    ],
    store: Store = RUNS / STORE_NAME,
) -> None:
    """Merge the runs of other stores into one; contradicting runs are refused."""
    with ResultsStore(store, write=True) as results:
        _tell(merge_stores(results, others), store)


@app.command("export")
def runs_export(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Output folder.")],
    store: Store = RUNS / STORE_NAME,
    file_format: Annotated[
        ExportFormat, typer.Option("--format", help="Parquet needs pyarrow.")
    ] = ExportFormat.CSV,
) -> None:
    """Write runs, evaluations, operators and sessions as CSV or Parquet."""
    with ResultsStore(store) as results:
        for path in export(results, out, file_format):
            typer.echo(str(path))


def variant_in(folder: Path) -> str | None:
    """Return the method's name with its settings from ``run.json``; ``None`` without that file."""
    from ascend_gym.cli.runs import read_settings
    from ascend_gym.cli.variants import variant_name

    try:
        return variant_name(read_settings(folder))
    except MisuseError:
        return None


def _tell(merged: Merged, store: Path) -> None:
    for folder, source in merged.same:
        note(f"{folder} is the same run as {source}: same operator, settings, seed, budget and chip")
    note(f"{merged.runs} runs read, {merged.changed} of them news to {store}")


@dataclass(frozen=True)
class _Only:
    """Which runs are compared."""

    budget: Annotated[int | None, typer.Option(help="Only runs with this budget.")] = None
    chip: Annotated[str | None, typer.Option(help="Only runs for this chip.")] = None
    model: Annotated[str | None, typer.Option(help="Only runs with this model.")] = None


@grouped
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
    only: _Only,
    store: Store = RUNS / STORE_NAME,
    other_store: Annotated[
        Path | None, typer.Option(metavar="FILE", exists=True, help="Store of B, if different.")
    ] = None,
    at: Annotated[
        int | None, typer.Option(min=1, help="Compare after this many evaluations; default the budget.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare two methods operator by operator, with a paired test of significance."""
    from ascend_gym.report.comparison import figure_notes
    from ascend_gym.report.leaderboard import paired_comparison, paired_table
    from ascend_gym.report.stored_runs import comparison_runs
    from ascend_gym.report.sweep_summary import print_table

    with ResultsStore(store) as results, ResultsStore(other_store or store) as others:
        found = _runs_of(results, one, only.budget, only.chip, only.model)
        against = _runs_of(others, other, found[0].budget, found[0].chip, only.model)
        document = paired_comparison(
            comparison_runs(results, found), comparison_runs(others, against), at or found[0].budget
        )
    if as_json:
        typer.echo(to_json({"one": one, "other": other, **document}))
        return
    table = paired_table(document, one, other)
    print_table(console(), table)
    for said in figure_notes([table]):
        console().print(said)


def leaderboard(
    suite: Annotated[str, typer.Option(help="Suite.")] = "core",
    store: Store = RUNS / STORE_NAME,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the JSON document to a file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Rank the stored methods on a suite; as JSON each has the command that reproduces its row."""
    from ascend_gym.report import leaderboard as ranking
    from ascend_gym.report.comparison import figure_notes
    from ascend_gym.report.sweep_summary import print_table

    operators = [spec.op_id for spec in list_operators(suite)]
    with ResultsStore(store) as results:
        board = ranking.leaderboard(results, suite, operators)
    if out is not None:
        try:
            out.write_text(f"{to_json(board)}\n", "utf-8")
        except OSError as error:
            raise MisuseError(f"{out} cannot be written: {error}") from error
    if as_json:
        typer.echo(to_json(board))
    elif out is None:
        table = ranking.leaderboard_table(board)
        print_table(console(), table)
        for said in figure_notes([table]):
            console().print(said)


def _runs_of(
    store: ResultsStore, variant: str, budget: int | None, chip: str | None, model: str | None
) -> list[RunRecord]:
    """Return the runs of a method with one budget, one chip, one model, and the same settings.

    Args:
        store: runs.
        variant: the method, or its name with the settings in which runs differ.
        budget: number of evaluations; ``None`` for any.
        chip: likewise.
        model: likewise.

    Raises:
        MisuseError: there are none, or they differ in any of these.
    """
    from ascend_gym.report.stored_runs import method_names

    able = [
        run for run in store.runs(chip=chip) if budget in (None, run.budget) and model in (None, run.model)
    ]
    names = method_names(able, ())
    found = [run for run in able if variant in (run.variant, names[run.run_id])]
    named = sorted({names[run.run_id] for run in found})
    kinds = sorted({(run.budget, run.chip, run.model) for run in found})
    if len(kinds) == 1 and len(named) == 1:
        return found
    if len(kinds) == 1:
        raise MisuseError(f"{variant!r} has runs with different settings; name one of: {'; '.join(named)}")
    if not kinds:
        known = ", ".join(sorted({run.variant for run in store.runs()})) or "none"
        raise MisuseError(f"{store.path}: no such runs of {variant!r}; methods with runs: {known}")
    raise MisuseError(
        f"{variant!r} has runs of several kinds; choose by --budget, --chip and --model among "
        + "; ".join(f"{budget} {chip} {model}" for budget, chip, model in kinds)
    )
