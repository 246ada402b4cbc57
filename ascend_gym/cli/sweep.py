"""``ascend-gym sweep``: operators x methods x seeds x budgets x chips, on any number of daemons and hosts."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from ascend_gym.cli.options import EXIT_INFRASTRUCTURE, EXIT_INTERRUPTED, EXIT_MISUSE, Json, console, note
from ascend_gym.cli.results import STORE_NAME
from ascend_gym.cli.sweep_hosts import NO_RAY, Hosts, opened_hosts
from ascend_gym.cli.sweep_plan import equal_budgets, estimate, jobs_of, kept_plan
from ascend_gym.core.errors import MisuseError
from ascend_gym.report.run_folder import RUNS
from ascend_gym.report.summary import to_json
from ascend_gym.search.driver import Duplicates
from ascend_gym.sweep.conductor import Conductor
from ascend_gym.sweep.jobs import Ending, Job, RunEnd, Update
from ascend_gym.sweep.loggers import LoggerName, LoggingCallback, logger_named
from ascend_gym.sweep.plan import SweepPlan, read_plan
from ascend_gym.sweep.run_folders import RunFolders
from ascend_gym.sweep.run_reader import Operators, read_run
from ascend_gym.sweep.run_records import RunRecord
from ascend_gym.sweep.store import ResultsStore
from ascend_gym.sweep.sweep_state import SweepState

EVENTS_NAME = "events.jsonl"


def sweep(
    plan_file: Annotated[
        Path | None, typer.Argument(metavar="[SWEEP.toml]", exists=True, dir_okay=False)
    ] = None,
    op: Annotated[list[str] | None, typer.Option(help="Suite, operator or pattern; repeatable.")] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Method, or a variant such as METHOD:no-PART; repeatable.")
    ] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Seed of runs; repeatable.")] = None,
    budget: Annotated[list[int] | None, typer.Option(min=1, help="Evaluations of a run; repeatable.")] = None,
    chip: Annotated[list[str] | None, typer.Option(help="Chip; repeatable.")] = None,
    model: Annotated[str | None, typer.Option(help="'offline', or a model at the endpoint.")] = None,
    offline_model: Annotated[str | None, typer.Option(help="Model of what is prepared once.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Sampling temperature.")] = None,
    tokens: Annotated[int | None, typer.Option(help="Tokens that each run may take.")] = None,
    usd: Annotated[float | None, typer.Option(help="US dollars that each run may cost.")] = None,
    price: Annotated[
        str | None, typer.Option(metavar="IN,OUT", help="US dollars per million tokens.")
    ] = None,
    device_seconds: Annotated[float | None, typer.Option(help="Device time that each run may take.")] = None,
    duplicates: Annotated[Duplicates | None, typer.Option(help="What a known candidate costs.")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the sweep.")] = RUNS / "sweep",
    ray_address: Annotated[
        str, typer.Option(help="none: processes of this host; local, auto, HOST:PORT, ray://HOST:PORT.")
    ] = NO_RAY,
    daemon: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDR[=RUNS]", help="Daemon and its runs at a time; repeatable."),
    ] = None,
    local_daemons: Annotated[int, typer.Option(min=0, help="Private daemons to start on this host.")] = 0,
    workers: Annotated[int, typer.Option(min=0, help="Workers of each; 0 lets them choose.")] = 0,
    runs_per_daemon: Annotated[int, typer.Option(min=1, help="Runs at a time on each daemon.")] = 2,
    in_flight: Annotated[int, typer.Option(min=1, help="Evaluations of a run at a time.")] = 2,
    base_url: Annotated[str | None, typer.Option(help="Endpoint of the model.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Questions of a run at a time.")] = 1,
    requests_per_minute: Annotated[int | None, typer.Option(min=1, help="Questions of a run.")] = None,
    tokens_per_minute: Annotated[int | None, typer.Option(min=1, help="Tokens of a run.")] = None,
    estimate_from: Annotated[
        Path | None, typer.Option(metavar="FILE", exists=True, help="Results store for --dry-run's estimate.")
    ] = None,
    logger: Annotated[
        list[LoggerName] | None, typer.Option(help="Experiment logger, into --out; repeatable.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the sweep in --out.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would take; do nothing.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: Json = False,
) -> None:
    """Run every method on every operator with every seed, with equal budgets, and compare."""
    plan = _told_plan(
        plan_file,
        operators=op,
        methods=method,
        seeds=seed,
        budgets=budget,
        chips=chip,
        model=model,
        offline_model=offline_model,
        temperature=temperature,
        tokens=tokens,
        usd=usd,
        price=price,
        device_seconds=device_seconds,
        duplicates=duplicates,
    )
    hosts = Hosts(ray_address, tuple(daemon or ()), local_daemons, workers, runs_per_daemon)
    if dry_run:
        _tell_estimate(plan or kept_plan(out, None, resume=True), hosts, in_flight, estimate_from, as_json)
        return
    arguments = ["--in-flight", str(in_flight), "--concurrency", str(concurrency)]
    for name, value in (
        ("--base-url", base_url),
        ("--requests-per-minute", requests_per_minute),
        ("--tokens-per-minute", tokens_per_minute),
    ):
        arguments += [] if value is None else [name, str(value)]
    job = _SweepRun(out, kept_plan(out, plan, resume=resume), quiet, as_json, tuple(logger or ()))
    job.make(hosts, (*arguments, "--command", json.dumps(sys.argv)))


def _told_plan(plan_file: Path | None, **flags: Any) -> SweepPlan | None:
    """Return the plan that file and flags tell; ``None`` if they tell nothing."""
    if plan_file is None and not any(flags.values()):
        return None
    return read_plan(plan_file, **flags)


def _tell_estimate(
    plan: SweepPlan, hosts: Hosts, in_flight: int, estimate_from: Path | None, as_json: bool
) -> None:
    daemons = len(hosts.daemons) or hosts.local_daemons or 1
    at_a_time = daemons * (hosts.workers or hosts.runs_per_daemon * in_flight)
    store = ResultsStore(estimate_from) if estimate_from is not None else None
    try:
        told = estimate(jobs_of(plan), store, at_a_time)
    finally:
        if store is not None:
            store.close()
    if as_json:
        typer.echo(to_json(told))
        return
    typer.echo(equal_budgets(plan))
    typer.echo(f"{told['runs']} runs, {told['evaluations']} evaluations, {told['baselines']} baselines")
    if told["hours"] is None:
        typer.echo("hours and tokens unknown: --estimate-from a results store with runs of these methods")
    else:
        typer.echo(
            f"about {told['hours']:.2f} hours with {at_a_time} evaluations at a time, and {told['tokens']} "
            f"tokens, by {told['measured_evaluations']} evaluations of earlier runs"
        )


@dataclass
class _SweepRun:
    """One sweep, begun or resumed, in its folder."""

    out: Path
    plan: SweepPlan
    quiet: bool
    as_json: bool
    loggers: tuple[LoggerName, ...]

    def make(self, hosts: Hosts, arguments: tuple[str, ...]) -> None:
        """Make all runs that have not ended; print what they found; exit with the status of the sweep."""
        from ascend_gym.report.sweep_view import SweepView

        jobs = jobs_of(self.plan)
        folders = RunFolders(self.out)
        for job in jobs:
            folders.begin(job)
        note(equal_budgets(self.plan))
        with ResultsStore(self.out / STORE_NAME, write=True) as store:
            keep = Keeper(store, folders)
            state = SweepState.of(jobs, [])
            keep.what_is_known(state)
            note(f"{state.ended} of {len(jobs)} runs have ended")
            with SweepView(console(stderr=True), state, quiet=self.quiet) as view, ExitStack() as opened:
                listeners = (view.show, *self._listeners(state, opened))
                if not state.done:
                    state.daemons, executor = opened.enter_context(opened_hosts(hosts, self.plan.chips))
                    Conductor(state, executor, folders, listeners, keep.ended, arguments).run()
            self._report(store, state)

    def _listeners(self, state: SweepState, opened: ExitStack) -> list[Callable[[Update], None]]:
        """Open what else is told of updates: the event log, and experiment loggers."""
        jobs = {job_id: each.job for job_id, each in state.jobs.items()}
        told = {job_id: each.index for job_id, each in state.jobs.items()}
        loggers = tuple(logger_named(name, self.out / "loggers") for name in self.loggers)
        logging = opened.enter_context(closing(LoggingCallback(jobs, told, loggers)))
        return [opened.enter_context(_EventLog(self.out)).note, logging]

    def _report(self, store: ResultsStore, state: SweepState) -> None:
        from ascend_gym.report.sweep_summary import (
            comparisons,
            print_table,
            summary_document,
            summary_tables,
        )

        compared = comparisons(store, self._runs(store, state))
        endings = Counter(each.end.ending.value for each in state.jobs.values() if each.end is not None)
        tables = summary_tables(compared)
        (self.out / "table.md").write_text("\n".join(each.markdown for each in tables), "utf-8")
        document = {
            "plan": self.plan.model_dump(mode="json"),
            "store": str(self.out / STORE_NAME),
            "endings": dict(endings),
            "spent_evaluations": sum(each.spent_evaluations for each in state.jobs.values()),
            "comparisons": summary_document(compared),
        }
        (self.out / "results.json").write_text(f"{to_json(document)}\n", "utf-8")
        if self.as_json:
            typer.echo(to_json(document))
        else:
            for table in tables:
                print_table(console(), table)
        self._exit_unless_done(state)

    def _runs(self, store: ResultsStore, state: SweepState) -> list[RunRecord]:
        """Return the stored runs of the plan, in its order."""
        stored = {(run.variant, run.op_id, run.seed, run.budget, run.chip): run for run in store.runs()}
        keys = [
            (job.variant, job.operator, job.seed, job.budget, job.chip)
            for job in (each.job for each in state.jobs.values())
        ]
        return [stored[key] for key in keys if key in stored]

    def _exit_unless_done(self, state: SweepState) -> None:
        ends = [(each.job, each.end) for each in state.jobs.values() if each.end is not None]
        for job, end in ends:
            if end.ending is Ending.REFUSED:
                note(f"{job.job_id}: {end.message}")
        endings = {end.ending for _, end in ends}
        if endings & {Ending.INTERRUPTED, Ending.INFRASTRUCTURE, Ending.LOST}:
            note(f"not finished; go on with 'ascend-gym sweep --resume --out {self.out}'")
            raise typer.Exit(EXIT_INTERRUPTED if Ending.INTERRUPTED in endings else EXIT_INFRASTRUCTURE)
        if Ending.REFUSED in endings:
            raise typer.Exit(EXIT_MISUSE)


class Keeper:
    """Puts runs into the store as they end."""

    def __init__(self, store: ResultsStore, folders: RunFolders) -> None:
        self._store, self._folders, self._operators = store, folders, Operators()

    def what_is_known(self, state: SweepState) -> None:
        """Take in the runs of an earlier process: those that have ended need nothing more."""
        for each in state.jobs.values():
            run = self.ended(each.job)
            if run is None:
                continue
            each.index, each.spent_evaluations = run.steps - 1, run.evaluations
            each.speedup = run.speedup
            if run.finished:
                state.has_ended_before(each.job.job_id, RunEnd(Ending.FINISHED, run.message))

    def ended(self, job: Job) -> RunRecord | None:
        """Store what is known of a run; return it, or ``None`` if nothing is."""
        folder = self._folders.folder(job)
        if not self._folders.has_begun(job):
            return None
        stored = read_run(folder, variant=job.variant, operators=self._operators)
        try:
            self._store.put(stored)
        except MisuseError as error:
            note(f"not stored: {error}")
        return stored.run


class _EventLog:
    """Every update as a JSON line in the sweep's folder, for dashboards."""

    def __init__(self, out: Path) -> None:
        self._file: IO[str] = (out / EVENTS_NAME).open("a", encoding="utf-8")

    def note(self, update: Update) -> None:
        told = {"job": update.job_id, "attempt": update.attempt, "host": update.host, "time_s": time.time()}
        for step in update.steps:
            self._file.write(json.dumps({**told, **asdict(step)}) + "\n")
        if update.end is not None:
            self._file.write(json.dumps({**told, **asdict(update.end)}) + "\n")
        self._file.flush()

    def __enter__(self) -> _EventLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
