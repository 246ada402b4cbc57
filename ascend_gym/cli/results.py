"""``ascend-gym runs``: list, show, compare, import, merge and export stored runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ascend_gym.cli.options import Json, console, note
from ascend_gym.core.errors import MisuseError
from ascend_gym.report.run_folder import RUNS
from ascend_gym.report.summary import to_json
from ascend_gym.sweep.merge import Format, Merged, export, import_runs, merge_stores, run_folders
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
    file_format: Annotated[Format, typer.Option("--format", help="Parquet needs pyarrow.")] = Format.CSV,
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
