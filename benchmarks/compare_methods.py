"""Compare search methods on a set of operators at equal budgets.

Every combination of method, operator and seed is one run of ``ascend-gym optimize`` in a folder of its own
below ``--out``; all of them ask one daemon, so that a candidate that several runs come upon is measured once
(each of them is charged for it all the same). Started again, the benchmark goes on where it was broken off:
runs whose journal has its end are done, others are resumed.

A method may be followed by settings of its own: ``ascend-optimizer:no-experience``, ``best-of-n:model=NAME``.
The first method named is the one that the others are compared with.

Prints the tables on standard output and progress on standard error; writes ``table.md`` and ``results.json``
into ``--out``. Exit status 1 when a run could not be finished: its operator is left out of the tables.

    python benchmarks/compare_methods.py --methods best-of-n greedy-rules --operators core \\
        --budget 40 --seeds 0 1 2 --out runs/comparison --workers 2
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from ascend_gym.cli.methods import RunSettings
from ascend_gym.cli.options import note
from ascend_gym.cli.runs import SETTINGS_NAME, read_settings, write_settings
from ascend_gym.cli.variants import variant_settings
from ascend_gym.client import DaemonOptions, LocalDaemon
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.own_python import own_python_command
from ascend_gym.report.comparison import Comparison, Run, Table
from ascend_gym.report.costs import PHASES, Costs, read_costs
from ascend_gym.report.curves import Curve, read_curve
from ascend_gym.report.metrics import BUDGETS
from ascend_gym.search.journal import JOURNAL_NAME
from ascend_gym.search.outcome import StopReason
from ascend_gym.suite.loader import list_operators, load_operator

SUITES = ("core", "cann-ops")
MESSAGES_NAME = "messages.txt"
QUOTED_CHARS = 300
IN_FLIGHT = 2
TABLE_WIDTH_CHARS = 180


@dataclass(frozen=True)
class Job:
    """One run: its method with settings, and the folder it lives in."""

    variant: str
    settings: RunSettings
    folder: Path

    @property
    def name(self) -> str:
        """Method, operator and seed."""
        return f"{self.variant} on {self.settings.operator}, seed {self.settings.seed}"

    def curve(self) -> Curve | None:
        """Return what the run found, or ``None`` if it is not finished."""
        if not (self.folder / JOURNAL_NAME).exists():
            return None
        curve = read_curve(self.folder)
        return curve if curve.stop_reason is not None else None


def main() -> int:
    """Run what is not finished, print and write the comparison, and return the exit status."""
    arguments = _parse()
    try:
        jobs = _jobs(arguments)
        _run_all([job for job in jobs if job.curve() is None], len(jobs), arguments)
        return _report(jobs, arguments)
    except MisuseError as error:
        note(f"compare_methods: {error}")
        return 2
    except KeyboardInterrupt:
        note("compare_methods: interrupted; the same command goes on from here")
        return 130


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", required=True, metavar="METHOD[:SETTING,...]")
    parser.add_argument("--operators", nargs="+", default=["core"], metavar="SUITE|NAME")
    parser.add_argument("--budget", type=int, default=40, help="evaluations of each run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--model", default="offline", help="model of the searches")
    parser.add_argument("--chip", default="910B2")
    parser.add_argument("--out", type=Path, required=True, help="folder of all runs")
    parser.add_argument("--workers", type=int, default=2, help="runs at a time, and workers of the daemon")
    parser.add_argument("--daemon", help="address of a daemon; by default a private one is started")
    arguments = parser.parse_args()
    if arguments.workers < 1 or arguments.budget < 1:
        parser.error("--workers and --budget must be at least 1")
    return arguments


def _jobs(arguments: argparse.Namespace) -> list[Job]:
    """Return every run, those of one operator and seed next to each other, in folders that say so.

    Raises:
        MisuseError: a method or an operator is unknown, or a folder belongs to a run of other settings.
    """
    return [
        _job(variant, operator, seed, arguments)
        for seed in dict.fromkeys(arguments.seeds)
        for operator in _operators(arguments.operators)
        for variant in dict.fromkeys(arguments.methods)
    ]


def _operators(names: Iterable[str]) -> list[str]:
    """Return the ids of the operators named, with those of a suite in place of its name."""
    ids = [
        spec.op_id
        for name in names
        for spec in (list_operators(name) if name in SUITES else [load_operator(name)])
    ]
    return list(dict.fromkeys(ids))


def _job(variant: str, operator: str, seed: int, arguments: argparse.Namespace) -> Job:
    common = {"budget": arguments.budget, "model": arguments.model, "chip": arguments.chip}
    settings = variant_settings(variant, operator=operator, seed=seed, **common)
    folder = arguments.out / variant.replace("/", "_") / operator.replace("/", "_") / f"seed{seed}"
    if (folder / SETTINGS_NAME).exists():
        if read_settings(folder) != settings:
            raise MisuseError(f"{folder} holds a run of other settings: name another folder with --out")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        write_settings(folder, settings)
    return Job(variant, settings, folder)


def _run_all(jobs: list[Job], total: int, arguments: argparse.Namespace) -> None:
    """Run ``jobs``, ``--workers`` at a time."""
    note(f"{total - len(jobs)} of {total} runs are finished")
    if not jobs:
        return
    options = DaemonOptions(chip=arguments.chip, workers=arguments.workers)
    started_s = time.monotonic()
    with LocalDaemon(options) if arguments.daemon is None else nullcontext() as daemon:
        address = arguments.daemon if daemon is None else daemon.address
        pool = ThreadPoolExecutor(arguments.workers)
        try:
            running = {pool.submit(_run, job, address): job for job in jobs}
            for done, future in enumerate(as_completed(running), 1):
                elapsed_s = time.monotonic() - started_s
                outcome = future.result()
                note(f"[{done}/{len(jobs)}, {elapsed_s:.0f} s] {running[future].name}: {outcome}")
        finally:
            pool.shutdown(cancel_futures=True)


def _run(job: Job, address: str) -> str:
    """Run or resume one search in a process of its own; return in a few words how it went."""
    command = [*own_python_command("ascend_gym.cli"), "resume", str(job.folder), "--json"]
    options = ["--daemon", address, "--in-flight", str(IN_FLIGHT)]
    with (job.folder / MESSAGES_NAME).open("w+", encoding="utf-8") as messages:
        status = subprocess.run(
            [*command, *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=messages
        ).returncode
        messages.seek(0)
        said = messages.read().strip()[-QUOTED_CHARS:]
    curve = job.curve()
    if curve is None:
        return f"NOT FINISHED, exit status {status}: {said}"
    found = f"{curve.speedup_at(job.settings.budget):.3f}x with {curve.evaluations} evaluations"
    return found if curve.stop_reason == StopReason.BUDGET_SPENT.value else f"{found}, {curve.stop_reason}"


def _report(jobs: list[Job], arguments: argparse.Namespace) -> int:
    """Print and write the comparison; return 1 if runs are missing."""
    runs = [Run(job.variant, job.settings.operator, job.settings.seed, job.curve()) for job in jobs]
    comparison = Comparison(runs)
    budgets = sorted({budget for budget in BUDGETS if budget < arguments.budget} | {arguments.budget})
    costs = {
        method: read_costs(job.folder for job in jobs if job.variant == method)
        for method in (*comparison.methods, *comparison.others)
    }
    tables = [*comparison.tables(budgets), _costs_table(costs)]
    for table in tables:
        _print(table)
    text = "\n".join(table.markdown for table in tables)
    (arguments.out / "table.md").write_text(text, encoding="utf-8")
    document = {
        "settings": {name: _plain(value) for name, value in vars(arguments).items()},
        **comparison.as_json(budgets),
        "costs": {method: asdict(each) for method, each in costs.items()},
    }
    (arguments.out / "results.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    missing = sum(run.curve is None for run in runs)
    if missing:
        note("\n".join([f"{missing} runs are missing; the same command tries again", *comparison.notes()]))
    return 1 if missing else 0


def _costs_table(costs: dict[str, Costs]) -> Table:
    columns = ("method", "evaluations", "known %", "s each", *(f"{phase} %" for phase in PHASES))
    rows = tuple((method, *_costs_cells(each)) for method, each in costs.items())
    return Table("Wall time of evaluations; known ones were measured before", columns, rows)


def _costs_cells(costs: Costs) -> tuple[str, ...]:
    shares = (costs.phase_seconds[phase] / (costs.total_seconds or 1.0) for phase in PHASES)
    return (
        str(costs.evaluations),
        f"{costs.cached_share:.0%}".rstrip("%"),
        f"{costs.seconds_per_evaluation:.2f}",
        *(f"{share:.0%}".rstrip("%") for share in shares),
    )


def _print(table: Table) -> None:
    drawn = RichTable(title=table.title, title_justify="left")
    for number, column in enumerate(table.columns):
        drawn.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in table.rows:
        drawn.add_row(*row)
    Console(width=TABLE_WIDTH_CHARS, markup=False, highlight=False).print(drawn)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


if __name__ == "__main__":
    sys.exit(main())
