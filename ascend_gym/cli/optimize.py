"""``ascend-gym optimize`` and ``ascend-gym resume``: run a search, or resume an interrupted one."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ascend_gym.cli.methods import BUILT_IN, Method, RunSettings, run_settings
from ascend_gym.cli.models import ModelAccess
from ascend_gym.cli.options import (
    EXIT_INFRASTRUCTURE,
    EXIT_INTERRUPTED,
    EXIT_MISUSE,
    LIMITS,
    MODEL,
    RUN,
    AcrossVersions,
    Chip,
    Json,
    OpDir,
    Operator,
    console,
    methods_beginning,
    note,
    opened_evaluator,
)
from ascend_gym.cli.runs import (
    discard_unused,
    operator_of,
    read_settings,
    run_in_folder,
    write_settings,
)
from ascend_gym.cli.search_options import (
    AgentOptions,
    DuplicatesOption,
    EvaluationOptions,
    MaxTokens,
    MethodOptions,
    OfflineModel,
    RecordedEndpoint,
    RunLimits,
    Sampling,
    StopAfter,
)
from ascend_gym.core.chips import recall_chip
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.interrupts import interrupts_held_back
from ascend_gym.core.option_groups import flat, grouped
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import OpSpec
from ascend_gym.report.summary import to_json
from ascend_gym.search.journal import JOURNAL_NAME
from ascend_gym.search.llm import OFFLINE_MODEL
from ascend_gym.search.model_client import MAX_TOKENS
from ascend_gym.search.outcome import RESUMABLE, SearchOutcome, StopReason
from ascend_gym.search.search_rules import Duplicates

if TYPE_CHECKING:
    from ascend_gym.report.console import SearchView

MethodOption = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="METHOD",
        rich_help_panel=RUN,
        help=f"{', '.join(each.value for each in Method)}; one of your own: FILE.py:CLASS.",
        autocompletion=methods_beginning,
    ),
]
Budget = Annotated[int, typer.Option(min=1, rich_help_panel=LIMITS, help="Number of evaluations.")]
Model = Annotated[str, typer.Option(rich_help_panel=MODEL, help="'offline', or a model at the endpoint.")]
Seed = Annotated[int, typer.Option(rich_help_panel=RUN, help="Seed of the run.")]
Out = Annotated[Path | None, typer.Option(help="New folder for journal and best candidate.")]


@dataclass(frozen=True)
class RunOptions:
    """What is run."""

    op: Operator
    op_dir: OpDir = None
    method: MethodOption = Method.BEST_OF_N.value
    budget: Budget = 20
    seed: Seed = 0
    chip: Chip = "910B2"
    duplicates: DuplicatesOption = Duplicates.CHARGED
    stop_after: StopAfter = None
    model: Model = "offline"
    offline_model: OfflineModel = None
    max_tokens: MaxTokens = MAX_TOKENS


@dataclass(frozen=True)
class Output:
    """Where the outcome goes."""

    out: Out = None
    as_json: Json = False


@grouped
def optimize(
    run: RunOptions,
    limits: RunLimits,
    sampling: Sampling,
    agent: AgentOptions,
    methods: MethodOptions,
    evaluation: EvaluationOptions,
    endpoint: RecordedEndpoint,
    output: Output,
) -> None:
    """Search for a faster implementation of an operator."""
    settings = _settings_of(run.op, flat(run, limits, sampling, agent, methods))
    spec = operator_of(settings)
    with _new_run(spec, settings, output.out) as folder:
        _run(spec, settings, folder, evaluation, ModelAccess.of(flat(endpoint)), as_json=output.as_json)


def _settings_of(operator: str, options: Mapping[str, Any]) -> RunSettings:
    """Return the settings of a run from the command's options; what is missing or not used is said first.

    Raises:
        MisuseError: they contradict each other, or a file is missing.
    """
    settings = run_settings(
        operator=operator, **{n: options[n] for n in RunSettings.model_fields if n in options}
    )
    settings.identity()
    if unused := settings.unused():
        note(f"ascend-gym: {unused}")
    return settings


@grouped
def resume(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="Folder of the search, such as runs/gelu-best-of-n-seed0.",
        ),
    ],
    evaluation: EvaluationOptions,
    endpoint: RecordedEndpoint,
    across_versions: AcrossVersions = False,
    as_json: Json = False,
) -> None:
    """Go on with a search that was broken off, in the folder that holds its journal."""
    access = ModelAccess.of(flat(endpoint))
    settings = read_settings(folder)
    if settings.chip_file is not None:
        recall_chip(settings.chip, Path(settings.chip_file), "run")
    spec = operator_of(settings)
    _run(spec, settings, folder, evaluation, access, as_json=as_json, across_versions=across_versions)


@contextmanager
def _new_run(spec: OpSpec, settings: RunSettings, out: Path | None) -> Iterator[Path]:
    """Make the folder of a run; it is removed again if nothing comes of it, and an interrupt is told."""
    from ascend_gym.report.run_folder import new_run_folder

    folder = new_run_folder(out, f"{spec.name}-{settings.method_name}-seed{settings.seed}")
    write_settings(folder, settings)
    interrupted = False
    try:
        yield folder
    except KeyboardInterrupt:
        interrupted = True
        raise
    finally:
        if discard_unused(folder) and interrupted:
            note("ascend-gym: interrupted before the first evaluation; nothing was saved")


def _run(
    spec: OpSpec,
    settings: RunSettings,
    folder: Path,
    evaluation: EvaluationOptions,
    access: ModelAccess,
    *,
    as_json: bool,
    across_versions: bool = False,
) -> None:
    from ascend_gym.report.console import SearchView, print_search
    from ascend_gym.report.run_folder import save_search, unified_diff

    writes = isinstance(settings.method, Method) and BUILT_IN[settings.method].writes_sources
    if not spec.has_sources and writes and settings.model == OFFLINE_MODEL:
        note(
            f"{spec.op_id} has no sources: the offline model writes operators only with --method ascend-craft"
        )
    view = SearchView(console(stderr=as_json), settings.budget, spec)
    evaluating = _evaluating(evaluation.daemon, settings.chip, view)
    outcome = run_in_folder(
        *(evaluating, folder, spec, settings),
        access=access,
        in_flight=evaluation.in_flight,
        on_event=view.show,
        across_versions=across_versions,
    )
    chip = settings.chip
    diff = unified_diff(spec.baseline, outcome.best)
    try:
        with interrupts_held_back():
            summary = save_search(folder, outcome, {**settings.identity(), "chip": chip})
    except OSError as error:
        if not as_json:
            print_search(console(), outcome, diff, folder / JOURNAL_NAME, chip)
        raise InfrastructureError(
            f"the outcome cannot be written: {error}; to do it again: {_resume_command(folder)}"
        ) from error
    if as_json:
        typer.echo(to_json(summary))
    else:
        print_search(console(), outcome, diff, folder / JOURNAL_NAME, chip)
    _exit_unless_done(outcome, folder)


@contextmanager
def _evaluating(daemons: Sequence[str] | None, chip: str, view: SearchView) -> Iterator[Evaluator]:
    """Open the evaluator, and show the search until the end of the block."""
    with opened_evaluator(daemons, chip) as evaluator, view:
        yield evaluator


def _resume_command(folder: Path) -> str:
    return shlex.join(["ascend-gym", "resume", str(folder)])


def _exit_unless_done(outcome: SearchOutcome, folder: Path) -> None:
    """Exit with the status of a search whose summary, the document of ``--json``, is already printed."""
    if outcome.stop_reason is StopReason.BASELINE_FAILED:
        note(f"ascend-gym: {outcome.spec.op_id}: {outcome.message}")
        raise typer.Exit(EXIT_MISUSE)
    if outcome.stop_reason is StopReason.METHOD_FAILED:
        note(f"ascend-gym: {outcome.message}")
        raise typer.Exit(EXIT_MISUSE)
    if outcome.stop_reason in RESUMABLE:
        note(f"ascend-gym: {outcome.message}; to continue: {_resume_command(folder)}")
        interrupted = outcome.stop_reason is StopReason.INTERRUPTED
        raise typer.Exit(EXIT_INTERRUPTED if interrupted else EXIT_INFRASTRUCTURE)
