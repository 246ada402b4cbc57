"""Options of searches: of ``optimize``, ``resume``, ``sweep`` and ``bank build``, and of single methods."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agents.ascend_craft.settings import Lowering
from agents.ascend_optimizer.settings import Ablation, Preset, Refinement, Schedule
from ascend_gym.cli.options import (
    ASCEND_CRAFT,
    ASCEND_OPTIMIZER,
    EVALUATION,
    LIMITS,
    MODEL,
    OTHER_METHODS,
    RUN,
)
from ascend_gym.search.search_rules import Duplicates
from ascend_gym.staged.examples import Examples

# Limits of a run; in a sweep, of every run.
DeviceSeconds = Annotated[
    float | None,
    typer.Option(rich_help_panel=LIMITS, help="Limit of device time per run, in seconds; default none."),
]
Tokens = Annotated[
    int | None,
    typer.Option(rich_help_panel=LIMITS, help="Limit of tokens that models read and write per run."),
]
Usd = Annotated[
    float | None,
    typer.Option(rich_help_panel=LIMITS, help="Limit of the models' cost per run, in US dollars."),
]
PriceOption = Annotated[
    str | None,
    typer.Option(
        "--price",
        metavar="IN,OUT[,CACHED]",
        rich_help_panel=LIMITS,
        help="US dollars per million tokens read, written, and read from the provider's cache.",
    ),
]
Builds = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=ASCEND_CRAFT,
        help="Builds without an evaluation that AscendCraft may spend; default no limit.",
    ),
]
DuplicatesOption = Annotated[
    Duplicates, typer.Option("--duplicates", rich_help_panel=RUN, help="Cost of proposing a candidate again.")
]

StopAfter = Annotated[
    int | None,
    typer.Option(
        min=1,
        rich_help_panel=LIMITS,
        help="End a run after so many evaluations in a row without a better one; default never.",
    ),
]

# Models, and how to reach them.
OfflineModel = Annotated[
    str | None,
    typer.Option(rich_help_panel=MODEL, help="Model for preparations per operator; default --model."),
]
MaxTokens = Annotated[
    int, typer.Option(min=1, rich_help_panel=MODEL, help="Maximum length of an answer, including reasoning.")
]
Timeout = Annotated[
    float, typer.Option(min=1.0, rich_help_panel=MODEL, help="Timeout of one answer of a model, in seconds.")
]
Temperature = Annotated[
    float | None,
    typer.Option(rich_help_panel=MODEL, help="Sampling temperature; default that of the endpoint."),
]
ReasoningEffort = Annotated[
    str | None,
    typer.Option(rich_help_panel=MODEL, help="How much a model may reason, such as low, medium or high."),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(rich_help_panel=MODEL, help="Endpoint in the OpenAI format; default $OPENAI_BASE_URL."),
]
Concurrency = Annotated[
    int, typer.Option(min=1, rich_help_panel=MODEL, help="Maximum simultaneous questions per run.")
]
RequestsPerMinute = Annotated[
    int | None,
    typer.Option(min=1, rich_help_panel=MODEL, help="Limit of questions per minute, per run and model."),
]
TokensPerMinute = Annotated[
    int | None,
    typer.Option(min=1, rich_help_panel=MODEL, help="Limit of tokens per minute, per run and model."),
]
Cassette = Annotated[
    Path | None,
    typer.Option(dir_okay=False, rich_help_panel=MODEL, help="File of recorded answers, to read and extend."),
]
Replay = Annotated[
    bool,
    typer.Option("--replay", rich_help_panel=MODEL, help="Take all answers from --cassette; ask no model."),
]
InFlight = Annotated[
    int, typer.Option(min=1, rich_help_panel=EVALUATION, help="Maximum simultaneous evaluations per run.")
]

# Settings of single methods, options of ``optimize`` alone; a sweep has them in its variants.
_PASS_DEFAULT = (
    "default 2 in the first round and one more in each further round, up to a quarter of --budget and 10; "
    "or that of --preset."
)
ScheduleOption = Annotated[
    Schedule,
    typer.Option("--schedule", rich_help_panel=ASCEND_OPTIMIZER, help="Order of AscendOptimizer's stages."),
]
PresetOption = Annotated[
    Preset | None,
    typer.Option(
        "--preset", rich_help_panel=ASCEND_OPTIMIZER, help="Schedule of a paper, for AscendOptimizer."
    ),
]
RefinementOption = Annotated[
    Refinement | None,
    typer.Option(
        "--refinement",
        rich_help_panel=ASCEND_OPTIMIZER,
        help="What AscendOptimizer's refinement asks; default joint, or paper with a preset or offline.",
    ),
]
Ablate = Annotated[
    list[Ablation] | None,
    typer.Option(rich_help_panel=ASCEND_OPTIMIZER, help="Part of AscendOptimizer to disable; repeatable."),
]
Bank = Annotated[
    Path | None,
    typer.Option(
        dir_okay=False, rich_help_panel=ASCEND_OPTIMIZER, help="Experience bank of AscendOptimizer."
    ),
]
EmbedderName = Annotated[
    str,
    typer.Option(
        rich_help_panel=ASCEND_OPTIMIZER, help="'lexical', 'minilm', or an embedding model at the endpoint."
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        file_okay=False,
        exists=True,
        rich_help_panel=OTHER_METHODS,
        help="Folder of 'ascend-gym train', for ppo.",
    ),
]


def _steps(stage: str) -> Any:
    """Return the option of the length of a pass of one of AscendOptimizer's stages."""
    return typer.Option(
        min=1, rich_help_panel=ASCEND_OPTIMIZER, help=f"Evaluations per pass of {stage}; {_PASS_DEFAULT}"
    )


TilingSteps = Annotated[int | None, _steps("tiling search")]
RefineSteps = Annotated[int | None, _steps("kernel refinement")]
RewindSteps = Annotated[
    int | None,
    typer.Option(
        min=0,
        rich_help_panel=ASCEND_OPTIMIZER,
        help="Evaluations spent first on rewinding the operator itself; default 0, or that of --preset.",
    ),
]
LoweringOption = Annotated[
    Lowering,
    typer.Option(
        "--lowering", rich_help_panel=ASCEND_CRAFT, help="Who translates the programs of AscendCraft."
    ),
]
ExamplesOption = Annotated[
    Examples,
    typer.Option(
        "--examples",
        rich_help_panel=OTHER_METHODS,
        help="Example that is shown for an operator without sources.",
    ),
]
PassBuilds = Annotated[
    bool,
    typer.Option(rich_help_panel=ASCEND_CRAFT, help="Build after each pass of a model, for AscendCraft."),
]
LeaveOneOut = Annotated[
    bool,
    typer.Option(
        rich_help_panel=ASCEND_OPTIMIZER,
        help="Leave out experience with the operator itself and its near twins.",
    ),
]
Tools = Annotated[
    bool,
    typer.Option(
        "--tools",
        rich_help_panel=OTHER_METHODS,
        help="Let the model of iterate look up calls and profiles first.",
    ),
]
