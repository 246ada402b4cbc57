"""``ascend-gym sweep``: operators x methods x seeds x budgets x chips, on any number of daemons and hosts."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ascend_gym.cli.models import ModelAccess, preflight
from ascend_gym.cli.options import (
    EVALUATION,
    EXIT_INFRASTRUCTURE,
    EXIT_INTERRUPTED,
    EXIT_MISUSE,
    LIMITS,
    MODEL,
    RUN,
    AcrossVersions,
    ConnectTimeout,
    Json,
    chips_beginning,
    console,
    methods_beginning,
    named_chip,
    note,
    operators_beginning,
)
from ascend_gym.cli.results import STORE_NAME
from ascend_gym.cli.search_options import (
    Concurrency,
    EndpointOptions,
    InFlight,
    OfflineModel,
    RunLimits,
    Sampling,
    StopAfter,
)
from ascend_gym.cli.sweep_hosts import NO_RAY, Hosts, opened_hosts
from ascend_gym.cli.sweep_plan import (
    as_written_now,
    equal_budgets,
    estimate,
    jobs_of,
    kept_plan,
    unused_settings,
)
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.interrupts import interrupts_held_back
from ascend_gym.core.option_groups import flat, grouped
from ascend_gym.report.run_folder import RUNS
from ascend_gym.report.summary import to_json
from ascend_gym.search.llm.metering import Price
from ascend_gym.search.search_rules import Duplicates
from ascend_gym.sweep.jobs import RunEnd, RunEnding, SweepJob, Update
from ascend_gym.sweep.loggers import LoggerName, LoggingCallback, logger_named
from ascend_gym.sweep.plan import Limits, SweepPlan, read_plan
from ascend_gym.sweep.run_folders import RunFolders
from ascend_gym.sweep.run_reader import Operators, read_run
from ascend_gym.sweep.run_records import RunRecord
from ascend_gym.sweep.store import ResultsStore
from ascend_gym.sweep.sweep_state import INTERRUPTED, SweepLoop, SweepState

EVENTS_NAME = "events.jsonl"
ACCOUNT_NAME = "spent.json"


_OF_MODELS = ("model", "offline_model", "temperature", "reasoning_effort", "max_tokens")
_PLAN_OPTIONS = {
    "op": "operators",
    "op_dir": "op_dirs",
    "method": "methods",
    "seed": "seeds",
    "budget": "budgets",
    "chip": "chips",
    **{name: name for name in (*_OF_MODELS, *Limits.model_fields)},
}
_CHILD_OPTIONS = (
    "in_flight",
    "concurrency",
    "base_url",
    "requests_per_minute",
    "tokens_per_minute",
    "timeout",
)


@dataclass(frozen=True)
class PlanOptions:
    """What is run; over what the file of a plan says."""

    plan_file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[SWEEP.toml]",
            exists=True,
            dir_okay=False,
            help="Plan of the sweep; options override what it says.",
        ),
    ] = None
    op: Annotated[
        list[str] | None,
        typer.Option(
            "--op",
            "--operator",
            rich_help_panel=RUN,
            help="Suite, operator or pattern; repeatable.",
            autocompletion=operators_beginning,
        ),
    ] = None
    op_dir: Annotated[
        list[Path] | None,
        typer.Option(
            "--op-dir",
            exists=True,
            file_okay=False,
            rich_help_panel=RUN,
            help="Folder of an operator of yours; repeatable.",
        ),
    ] = None
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            rich_help_panel=RUN,
            help="Method, or a variant such as METHOD:no-PART; repeatable.",
            autocompletion=methods_beginning,
        ),
    ] = None
    seed: Annotated[
        list[int] | None, typer.Option("--seed", rich_help_panel=RUN, help="Seed of runs; repeatable.")
    ] = None
    budget: Annotated[
        list[int] | None,
        typer.Option("--budget", min=1, rich_help_panel=LIMITS, help="Evaluations of a run; repeatable."),
    ] = None
    chip: Annotated[
        list[str] | None,
        typer.Option(
            "--chip",
            "--chip-file",
            metavar="CHIP",
            rich_help_panel=EVALUATION,
            help="Chip, or FILE.toml of one; repeatable.",
            callback=lambda chips: chips and [named_chip(chip) for chip in chips],
            autocompletion=chips_beginning,
        ),
    ] = None
    duplicates: Annotated[
        Duplicates | None, typer.Option(rich_help_panel=RUN, help="Cost of proposing a candidate again.")
    ] = None
    stop_after: StopAfter = None


@dataclass(frozen=True)
class ModelNames:
    """Models of all runs."""

    model: Annotated[
        str | None, typer.Option(rich_help_panel=MODEL, help="'offline', or a model at the endpoint.")
    ] = None
    offline_model: OfflineModel = None
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, rich_help_panel=MODEL, help="Maximum length of an answer, including reasoning."),
    ] = None


@dataclass(frozen=True)
class SharedLimits:
    """Limits of all runs together."""

    sweep_tokens: Annotated[
        int | None,
        typer.Option(
            min=0,
            rich_help_panel=LIMITS,
            help="Limit of tokens that models read and write in all runs together.",
        ),
    ] = None
    sweep_usd: Annotated[
        float | None,
        typer.Option(
            min=0,
            rich_help_panel=LIMITS,
            help="Limit of the models' cost in all runs together, in US dollars.",
        ),
    ] = None


@dataclass(frozen=True)
class HostOptions:
    """Where runs execute, and how many at a time."""

    ray_address: Annotated[
        str,
        typer.Option(
            rich_help_panel=EVALUATION,
            help="none (local processes), local, auto, HOST:PORT or ray://HOST:PORT.",
        ),
    ] = NO_RAY
    daemon: Annotated[
        list[str] | None,
        typer.Option(
            "--daemon",
            metavar="ADDR[=RUNS]",
            rich_help_panel=EVALUATION,
            help="Daemon, and its maximum simultaneous runs; repeatable.",
        ),
    ] = None
    connect_timeout: ConnectTimeout = None
    local_daemons: Annotated[
        int, typer.Option(min=0, rich_help_panel=EVALUATION, help="Private daemons to start on this host.")
    ] = 0
    workers: Annotated[
        int,
        typer.Option(min=0, rich_help_panel=EVALUATION, help="Workers per private daemon; 0 lets it choose."),
    ] = 0
    runs_per_daemon: Annotated[
        int, typer.Option(min=1, rich_help_panel=EVALUATION, help="Maximum simultaneous runs per daemon.")
    ] = 2
    in_flight: InFlight = 2
    concurrency: Concurrency = 1


@dataclass(frozen=True)
class Course:
    """Whether and how the sweep runs, and what it leaves."""

    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the sweep.")] = RUNS / "sweep"
    estimate_from: Annotated[
        Path | None, typer.Option(metavar="FILE", exists=True, help="Results store for --dry-run's estimate.")
    ] = None
    logger: Annotated[
        list[LoggerName] | None,
        typer.Option("--logger", help="Experiment logger, writing into --out; repeatable."),
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Resume the sweep in --out.")] = False
    across_versions: AcrossVersions = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the number of runs and evaluations; execute nothing.")
    ] = False
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False
    as_json: Json = False


@grouped
def sweep(
    plan: PlanOptions,
    models: ModelNames,
    sampling: Sampling,
    limits: RunLimits,
    together: SharedLimits,
    host: HostOptions,
    endpoint: EndpointOptions,
    course: Course,
) -> None:
    """Run every method on every operator with every seed, with equal budgets, and compare."""
    given = _given_plan(plan.plan_file, flat(plan, models, sampling, limits))
    hosts = Hosts(
        host.ray_address, tuple(host.daemon or ()), host.local_daemons, host.workers, host.runs_per_daemon
    )
    known = given or kept_plan(course.out, None, resume=True)
    if together.sweep_usd is not None and known.limits.price is None:
        raise MisuseError("--sweep-usd needs the price of the model: give --price IN,OUT")
    if course.dry_run:
        _print_estimate(known, hosts, host.in_flight, course.estimate_from, course.as_json)
        return
    job = _SweepRun(
        course.out,
        kept_plan(course.out, given, resume=course.resume),
        course.quiet,
        course.as_json,
        tuple(course.logger or ()),
    )
    of_runs = {name: flat(host, endpoint)[name] for name in _CHILD_OPTIONS}
    account = _account_of(course.out, together)
    arguments = _child_arguments({**of_runs, **account}, across_versions=course.across_versions)
    job.make(hosts, arguments, ModelAccess.of({**of_runs, **account, "shared_rates": True}))


def _child_arguments(options: Mapping[str, Any], *, across_versions: bool) -> tuple[str, ...]:
    """Return the arguments of the processes that execute runs."""
    given = {name: value for name, value in options.items() if value is not None}
    words = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    words += ["--across-versions"] if across_versions else []
    return (*words, "--shared-rates", "--command", json.dumps(sys.argv))


def _account_of(out: Path, together: SharedLimits) -> dict[str, Any]:
    """Return what all runs may spend together, and the file in which they keep what they have spent."""
    limits = flat(together)
    if all(limit is None for limit in limits.values()):
        return {}
    return {"sweep_account": (out / ACCOUNT_NAME).resolve(), **limits}


def _given_plan(plan_file: Path | None, options: Mapping[str, Any]) -> SweepPlan | None:
    """Return the plan of file and options; ``None`` if neither specifies anything."""
    flags = {name: options[option] for option, name in _PLAN_OPTIONS.items()}
    flags["op_dirs"] = [str(folder) for folder in options["op_dir"] or ()]
    if plan_file is None and not any(flags.values()):
        return None
    return read_plan(plan_file, **flags)


def _print_estimate(
    plan: SweepPlan, hosts: Hosts, in_flight: int, estimate_from: Path | None, as_json: bool
) -> None:
    daemons = len(hosts.daemons) or hosts.local_daemons or 1
    at_a_time = daemons * (hosts.workers or hosts.runs_per_daemon * in_flight)
    store = ResultsStore(estimate_from) if estimate_from is not None else None
    price = Price.parsed(plan.limits.price) if plan.limits.price else None
    try:
        cost = estimate(jobs_of(plan), store, at_a_time, price)
    finally:
        if store is not None:
            store.close()
    if as_json:
        typer.echo(to_json(cost))
        return
    typer.echo(equal_budgets(plan))
    typer.echo(f"{cost['runs']} runs, {cost['evaluations']} evaluations, {cost['baselines']} baselines")
    if cost["hours"] is None:
        typer.echo(
            "hours, tokens and money unknown: --estimate-from a results store with runs of these methods, "
            "such as a pilot with two operators"
        )
    else:
        typer.echo(
            f"about {cost['hours']:.2f} hours with {at_a_time} evaluations at a time, {cost['tokens']} "
            f"tokens and {cost['usd']:.2f} US dollars, by {cost['measured_evaluations']} earlier evaluations"
        )


@dataclass
class _SweepRun:
    """A sweep in its folder, new or resumed."""

    out: Path
    plan: SweepPlan
    quiet: bool
    as_json: bool
    loggers: tuple[LoggerName, ...]

    def make(self, hosts: Hosts, arguments: tuple[str, ...], access: ModelAccess) -> None:
        """Execute all runs that have not ended, print the results, and exit with the status of the sweep.

        Models are asked for a word first, so that none is evaluated for that cannot answer.
        """
        from ascend_gym.report.sweep_view import SweepView

        jobs = jobs_of(self.plan)
        folders = RunFolders(self.out, as_written_now)
        for job in jobs:
            folders.begin(job)
        for line in (*unused_settings(self.plan), equal_budgets(self.plan)):
            note(line)
        with ResultsStore(self.out / STORE_NAME, write=True) as store:
            recorder = RunRecorder(store, folders)
            state = SweepState.of(jobs, [])
            recorder.restore(state)
            note(f"{state.ended} of {len(jobs)} runs have ended{_taken_up(state)}")
            with SweepView(console(stderr=True), state, quiet=self.quiet) as view, ExitStack() as opened:
                listeners = (view.show, *self._listeners(state, opened))
                try:
                    if not state.done:
                        waiting = [each.job for each in state.jobs.values() if each.end is None]
                        for said in preflight(waiting, access):
                            note(said)
                        state.daemons, executor = opened.enter_context(opened_hosts(hosts, self.plan.chips))
                        SweepLoop(state, executor, folders, listeners, recorder.ended, arguments).run()
                except KeyboardInterrupt:  # before the first run
                    state.give_up(INTERRUPTED)
            with interrupts_held_back():
                self._report(store, state, folders)
            self._exit_unless_done(state)

    def _listeners(self, state: SweepState, opened: ExitStack) -> list[Callable[[Update], None]]:
        """Open the other receivers of updates: the event log and experiment loggers."""
        jobs = {job_id: each.job for job_id, each in state.jobs.items()}
        last_indices = {job_id: each.index for job_id, each in state.jobs.items()}
        loggers = tuple(logger_named(name, self.out / "loggers") for name in self.loggers)
        logging = opened.enter_context(closing(LoggingCallback(jobs, last_indices, loggers)))
        return [opened.enter_context(_event_log(self.out)), logging]

    def _report(self, store: ResultsStore, state: SweepState, folders: RunFolders) -> None:
        from ascend_gym.report.comparison import figure_notes
        from ascend_gym.report.sweep_summary import (
            comparisons,
            costs_table,
            model_costs_tables,
            print_table,
            summary_document,
            summary_notes,
            summary_tables,
        )

        compared = comparisons(store, self._runs(store, state))
        endings = Counter(each.end.ending.value for each in state.jobs.values() if each.end is not None)
        tables = [*summary_tables(compared), *model_costs_tables(store)]
        notes = [*summary_notes(compared), *figure_notes(tables)]
        text = "\n".join([*(each.markdown for each in tables), *(f"{said}\n" for said in notes)])
        (self.out / "table.md").write_text(text, "utf-8")
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
            return
        made = [(each.job.variant, folders.folder(each.job)) for each in state.jobs.values()]
        for table in (*tables, costs_table(made)):  # seconds vary from sweep to sweep: they are in no file
            print_table(console(), table)
        for said in notes:
            console().print(said)

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
            if end.ending is RunEnding.REFUSED:
                note(f"{job.job_id}: {end.message}")
        endings = {end.ending for _, end in ends}
        finished = sum(end.ending is RunEnding.FINISHED for _, end in ends)
        spent = sum(each.spent_evaluations for each in state.jobs.values())
        for reason in dict.fromkeys(end.message for _, end in ends if end.ending is RunEnding.INFRASTRUCTURE):
            note(f"{reason}; kept: {finished} of {len(ends)} runs that have finished, {spent} evaluations")
        refusals = {end.message for _, end in ends if end.ending is RunEnding.MODEL_REFUSED}
        for message in sorted(refusals):
            note(message)
        if endings - {RunEnding.FINISHED, RunEnding.REFUSED}:
            resume = shlex.join(["ascend-gym", "sweep", "--resume", "--out", str(self.out)])
            note(f"not finished; to continue: {resume}")
            raise typer.Exit(EXIT_INTERRUPTED if RunEnding.INTERRUPTED in endings else EXIT_INFRASTRUCTURE)
        if RunEnding.REFUSED in endings:
            raise typer.Exit(EXIT_MISUSE)


def _taken_up(state: SweepState) -> str:
    """Return what is recorded of runs that have begun and not ended, to follow what has ended."""
    begun = [each for each in state.jobs.values() if each.end is None and each.index >= 0]
    if not begun:
        return ""
    evaluations = sum(each.spent_evaluations for each in begun)
    return f"; recorded evaluations taken up: {evaluations}, of {len(begun)} unfinished"


class RunRecorder:
    """Stores runs as they end."""

    def __init__(self, store: ResultsStore, folders: RunFolders) -> None:
        self._store, self._folders, self._operators = store, folders, Operators()

    def restore(self, state: SweepState) -> None:
        """Mark runs that an earlier process has completed."""
        for each in state.jobs.values():
            run = self.ended(each.job)
            if run is None:
                continue
            each.index, each.spent_evaluations = run.steps - 1, run.evaluations
            each.speedup = run.speedup
            if run.finished:
                state.has_ended_before(each.job.job_id, RunEnd(RunEnding.FINISHED, run.message))

    def ended(self, job: SweepJob) -> RunRecord | None:
        """Store the state of a run; return it, or ``None`` if it has not begun."""
        folder = self._folders.folder(job)
        if not self._folders.has_begun(job):
            return None
        stored = read_run(folder, variant=job.variant, operators=self._operators)
        try:
            self._store.put(stored)
        except MisuseError as error:
            note(f"not stored: {error}")
        return stored.run


@contextmanager
def _event_log(out: Path) -> Iterator[Callable[[Update], None]]:
    """Open the sweep's event log; return what writes every update into it as JSON lines, for dashboards."""
    with (out / EVENTS_NAME).open("a", encoding="utf-8") as file:

        def note(update: Update) -> None:
            about = {"job": update.job_id, "attempt": update.attempt, "host": update.host}
            for event in (*update.steps, *([update.end] if update.end is not None else ())):
                file.write(json.dumps({**about, "time_s": time.time(), **asdict(event)}) + "\n")
            file.flush()

        yield note
