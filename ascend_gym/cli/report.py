"""``ascend-gym report``: stored runs as an HTML report, with figures and tables for papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ascend_gym.cli.options import methods_beginning, note, operators_beginning
from ascend_gym.cli.results import STORE_NAME, Store
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.option_groups import grouped
from ascend_gym.report.run_folder import RUNS
from ascend_gym.sweep.run_records import RunRecord
from ascend_gym.sweep.store import ResultsStore

if TYPE_CHECKING:
    from ascend_gym.report.page.chart import Chart

_CLUSTERS = 6

Reference = Annotated[
    str | None,
    typer.Option(help="Method to compare with; default best-of-n if it is compared, else the first by name."),
]
BankFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Experience bank to show; by default the included one.")
]
Export = Annotated[
    Path | None,
    typer.Option(metavar="DIR", file_okay=False, help="Also write figures as SVG and tables as LaTeX."),
]


@dataclass(frozen=True)
class _Choice:
    """Which runs are shown."""

    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN]...", help="Ids or prefixes of ids; by default all.")
    ] = None
    store: Store = RUNS / STORE_NAME
    chip: Annotated[str | None, typer.Option(help="Only runs on this chip.")] = None
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Only runs of this method or variant; repeatable.", autocompletion=methods_beginning
        ),
    ] = None
    operator: Annotated[
        list[str] | None,
        typer.Option(
            "--operator",
            "--op",
            help="Only runs on this operator, such as core/gelu; repeatable.",
            autocompletion=operators_beginning,
        ),
    ] = None


@grouped
def report(
    choice: _Choice,
    html: Annotated[Path, typer.Option(metavar="FILE", dir_okay=False, help="Output file.")] = Path(
        "report.html"
    ),
    reference: Reference = None,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Search methods on Ascend C operators",
    bank: BankFile = None,
    export: Export = None,
    png: Annotated[bool, typer.Option("--png", help="With --export: figures as PNG too.")] = False,
) -> None:
    """Write an HTML report about stored runs: one file without external resources."""
    from ascend_gym.report.page.document import results_page, write_exports, write_page
    from ascend_gym.report.page.results import read_results

    with ResultsStore(choice.store) as results:
        named = [results.run_named(run) for run in choice.runs or ()]
        known = named or results.runs(chip=choice.chip)
        chosen = _chosen(known, choice.method or [], choice.operator or [])
        page = results_page(read_results(results, chosen, reference), title, _landscape(bank))
    write_page(page, html)
    note(f"{html}: {len(chosen)} runs")
    if export is not None:
        written = write_exports(page, export, png=png)
        note(f"{export}: {len(written)} files")


def _chosen(runs: Sequence[RunRecord], methods: Sequence[str], operators: Sequence[str]) -> list[RunRecord]:
    """Return the runs of the given methods and operators; all if none are given.

    Raises:
        MisuseError: one of them has no run.
    """
    known_methods = {run.variant for run in runs}
    known_operators = {name for run in runs for name in (run.op_id, run.op_id.rpartition("/")[2])}
    for option, named, known in (
        ("--method", methods, known_methods),
        ("--operator", operators, known_operators),
    ):
        for name in named:
            if name not in known:
                raise MisuseError(
                    f"{option} {name}: no such run; there are {', '.join(sorted(known)) or 'none'}"
                )
    return [
        run
        for run in runs
        if (not methods or run.variant in methods)
        and (not operators or {run.op_id, run.op_id.rpartition("/")[2]} & set(operators))
    ]


def _landscape(bank: Path | None) -> Chart | None:
    """Return the figure of an experience bank; ``None`` if it has too few entries."""
    from agents.ascend_optimizer.bank import bank_at
    from agents.ascend_optimizer.embedders import LexicalEmbedder
    from ascend_gym.report.page.figures import landscape

    pieces = list(bank_at(bank))
    if len(pieces) <= _CLUSTERS:
        return None
    texts = [f"{piece.title} {piece.description}" for piece in pieces]
    return landscape(LexicalEmbedder(texts).embed(texts), [piece.motif for piece in pieces], _CLUSTERS)
