"""Groups of options of searches: of ``optimize``, ``resume``, ``sweep`` and ``bank build``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from agents.ascend_craft.settings import Lowering
from agents.ascend_optimizer.settings import Ablation, Preset, Refinement, Schedule
from ascend_gym.cli.agent import LEXICAL_EMBEDDER
from ascend_gym.cli.options import (
    ASCEND_CRAFT,
    ASCEND_OPTIMIZER,
    EVALUATION,
    LIMITS,
    MODEL,
    OTHER_METHODS,
    RUN,
    ConnectTimeout,
    Daemon,
)
from ascend_gym.search.model_client import TIMEOUT_S
from ascend_gym.search.search_rules import Duplicates
from ascend_gym.staged.examples import Examples

OfflineModel = Annotated[
    str | None,
    typer.Option(rich_help_panel=MODEL, help="Model for preparations per operator; default --model."),
]
StopAfter = Annotated[
    int | None,
    typer.Option(
        min=1,
        rich_help_panel=LIMITS,
        help="End a run after so many evaluations in a row without a better one; default never.",
    ),
]
DuplicatesOption = Annotated[
    Duplicates, typer.Option("--duplicates", rich_help_panel=RUN, help="Cost of proposing a candidate again.")
]
MaxTokens = Annotated[
    int,
    typer.Option(min=1, rich_help_panel=MODEL, help="Maximum length of an answer, including reasoning."),
]
Concurrency = Annotated[
    int, typer.Option(min=1, rich_help_panel=MODEL, help="Maximum simultaneous questions per run.")
]
InFlight = Annotated[
    int, typer.Option(min=1, rich_help_panel=EVALUATION, help="Maximum simultaneous evaluations per run.")
]

_PASS_DEFAULT = (
    "default 2 in the first round and one more in each further round, up to a quarter of --budget and 10; "
    "or that of --preset."
)


def _steps(stage: str) -> Any:
    """Return the option of the length of a pass of one of AscendOptimizer's stages."""
    return typer.Option(
        min=1, rich_help_panel=ASCEND_OPTIMIZER, help=f"Evaluations per pass of {stage}; {_PASS_DEFAULT}"
    )


@dataclass(frozen=True)
class RunLimits:
    """Limits of a run; in a sweep, of every run."""

    device_seconds: Annotated[
        float | None,
        typer.Option(rich_help_panel=LIMITS, help="Limit of device time per run, in seconds; default none."),
    ] = None
    tokens: Annotated[
        int | None,
        typer.Option(rich_help_panel=LIMITS, help="Limit of tokens that models read and write per run."),
    ] = None
    usd: Annotated[
        float | None,
        typer.Option(rich_help_panel=LIMITS, help="Limit of the models' cost per run, in US dollars."),
    ] = None
    price: Annotated[
        str | None,
        typer.Option(
            "--price",
            metavar="IN,OUT[,CACHED]",
            rich_help_panel=LIMITS,
            help="US dollars per million tokens read, written, and read from the provider's cache.",
        ),
    ] = None


@dataclass(frozen=True)
class Sampling:
    """How a model answers."""

    temperature: Annotated[
        float | None,
        typer.Option(rich_help_panel=MODEL, help="Sampling temperature; default that of the endpoint."),
    ] = None
    reasoning_effort: Annotated[
        str | None,
        typer.Option(rich_help_panel=MODEL, help="How much a model may reason, such as low, medium or high."),
    ] = None


@dataclass(frozen=True)
class AgentOptions:
    """Settings of AscendOptimizer."""

    preset: Annotated[
        Preset | None,
        typer.Option(
            "--preset", rich_help_panel=ASCEND_OPTIMIZER, help="Schedule of a paper, for AscendOptimizer."
        ),
    ] = None
    refinement: Annotated[
        Refinement | None,
        typer.Option(
            "--refinement",
            rich_help_panel=ASCEND_OPTIMIZER,
            help="What AscendOptimizer's refinement asks; default joint, or paper with a preset or offline.",
        ),
    ] = None
    schedule: Annotated[
        Schedule,
        typer.Option(
            "--schedule", rich_help_panel=ASCEND_OPTIMIZER, help="Order of AscendOptimizer's stages."
        ),
    ] = Schedule.REFINE_THEN_TILE
    ablate: Annotated[
        list[Ablation] | None,
        typer.Option(
            rich_help_panel=ASCEND_OPTIMIZER, help="Part of AscendOptimizer to disable; repeatable."
        ),
    ] = None
    bank: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, rich_help_panel=ASCEND_OPTIMIZER, help="Experience bank of AscendOptimizer."
        ),
    ] = None
    embedder: Annotated[
        str,
        typer.Option(
            rich_help_panel=ASCEND_OPTIMIZER,
            help="'lexical', 'minilm', or an embedding model at the endpoint.",
        ),
    ] = LEXICAL_EMBEDDER
    tiling_steps: Annotated[int | None, _steps("tiling search")] = None
    refine_steps: Annotated[int | None, _steps("kernel refinement")] = None
    rewind_steps: Annotated[
        int | None,
        typer.Option(
            min=0,
            rich_help_panel=ASCEND_OPTIMIZER,
            help="Evaluations spent first on rewinding the operator itself; default 0, or that of --preset.",
        ),
    ] = None
    leave_one_out: Annotated[
        bool,
        typer.Option(
            rich_help_panel=ASCEND_OPTIMIZER,
            help="Leave out experience with the operator itself and its near twins.",
        ),
    ] = True


@dataclass(frozen=True)
class MethodOptions:
    """Settings of the other methods; a sweep has them in its variants."""

    checkpoint: Annotated[
        Path | None,
        typer.Option(
            file_okay=False,
            exists=True,
            rich_help_panel=OTHER_METHODS,
            help="Folder of 'ascend-gym train', for ppo.",
        ),
    ] = None
    tools: Annotated[
        bool,
        typer.Option(
            "--tools",
            rich_help_panel=OTHER_METHODS,
            help="Let the model of iterate look up calls and profiles first.",
        ),
    ] = False
    lowering: Annotated[
        Lowering,
        typer.Option(
            "--lowering", rich_help_panel=ASCEND_CRAFT, help="Who translates the programs of AscendCraft."
        ),
    ] = Lowering.RULES
    examples: Annotated[
        Examples,
        typer.Option(
            "--examples",
            rich_help_panel=OTHER_METHODS,
            help="Example that is shown for an operator without sources.",
        ),
    ] = Examples.NONE
    pass_builds: Annotated[
        bool,
        typer.Option(rich_help_panel=ASCEND_CRAFT, help="Build after each pass of a model, for AscendCraft."),
    ] = True
    builds: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=ASCEND_CRAFT,
            help="Builds without an evaluation that AscendCraft may spend; default no limit.",
        ),
    ] = None


@dataclass(frozen=True)
class EndpointOptions:
    """How models are reached."""

    base_url: Annotated[
        str | None,
        typer.Option(rich_help_panel=MODEL, help="Endpoint in the OpenAI format; default $OPENAI_BASE_URL."),
    ] = None
    requests_per_minute: Annotated[
        int | None,
        typer.Option(min=1, rich_help_panel=MODEL, help="Limit of questions per minute, per run and model."),
    ] = None
    tokens_per_minute: Annotated[
        int | None,
        typer.Option(min=1, rich_help_panel=MODEL, help="Limit of tokens per minute, per run and model."),
    ] = None
    timeout: Annotated[
        float,
        typer.Option(min=1.0, rich_help_panel=MODEL, help="Timeout of one answer of a model, in seconds."),
    ] = TIMEOUT_S


@dataclass(frozen=True)
class RecordedEndpoint(EndpointOptions):
    """How models are reached, how many questions are asked at a time, and the answers that are known."""

    concurrency: Concurrency = 1
    cassette: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, rich_help_panel=MODEL, help="File of recorded answers, to read and extend."
        ),
    ] = None
    replay: Annotated[
        bool,
        typer.Option(
            "--replay", rich_help_panel=MODEL, help="Take all answers from --cassette; ask no model."
        ),
    ] = False


@dataclass(frozen=True)
class EvaluationOptions:
    """Where candidates are evaluated, and how many at a time."""

    daemon: Daemon = None
    connect_timeout: ConnectTimeout = None
    in_flight: InFlight = 2
