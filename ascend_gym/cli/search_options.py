"""Search options shared by ``optimize``, ``resume`` and ``sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agents.ascend_craft.settings import Lowering
from agents.ascend_optimizer.settings import Ablation, Preset, Schedule
from ascend_gym.search.driver import Duplicates
from ascend_gym.staged.examples import Examples

# Limits of a run; in a sweep, of every run.
DeviceSeconds = Annotated[float | None, typer.Option(help="Limit of device time per run, in seconds.")]
Tokens = Annotated[int | None, typer.Option(help="Limit of tokens that models read and write per run.")]
Usd = Annotated[float | None, typer.Option(help="Limit of the models' cost per run, in US dollars.")]
PriceOption = Annotated[
    str | None,
    typer.Option("--price", metavar="IN,OUT", help="US dollars per million tokens read and written."),
]
Builds = Annotated[int | None, typer.Option(help="Builds without an evaluation that AscendCraft may spend.")]
DuplicatesOption = Annotated[
    Duplicates, typer.Option("--duplicates", help="Cost of proposing a candidate again.")
]

# Models, and how to reach them.
OfflineModel = Annotated[
    str | None, typer.Option(help="Model for preparations per operator; default --model.")
]
MaxTokens = Annotated[int, typer.Option(min=1, help="Maximum length of an answer, including reasoning.")]
Timeout = Annotated[float, typer.Option(min=1.0, help="Timeout of one answer of a model, in seconds.")]
Temperature = Annotated[float | None, typer.Option(help="Sampling temperature.")]
ReasoningEffort = Annotated[
    str | None, typer.Option(help="How much a model may reason, such as low, medium or high.")
]
BaseUrl = Annotated[str | None, typer.Option(help="Endpoint in the OpenAI format; default $OPENAI_BASE_URL.")]
Concurrency = Annotated[int, typer.Option(min=1, help="Maximum simultaneous questions per run.")]
RequestsPerMinute = Annotated[
    int | None, typer.Option(min=1, help="Limit of questions per minute, per run and model.")
]
TokensPerMinute = Annotated[
    int | None, typer.Option(min=1, help="Limit of tokens per minute, per run and model.")
]
Cassette = Annotated[
    Path | None, typer.Option(dir_okay=False, help="File of recorded answers, to read and extend.")
]
Replay = Annotated[bool, typer.Option("--replay", help="Take all answers from --cassette; ask no model.")]
InFlight = Annotated[int, typer.Option(min=1, help="Maximum simultaneous evaluations per run.")]

# Settings of single methods.
ScheduleOption = Annotated[Schedule, typer.Option("--schedule", help="Order of AscendOptimizer's stages.")]
PresetOption = Annotated[
    Preset | None, typer.Option("--preset", help="Schedule of a paper, for AscendOptimizer.")
]
Ablate = Annotated[
    list[Ablation] | None, typer.Option(help="Part of AscendOptimizer to disable; repeatable.")
]
Bank = Annotated[Path | None, typer.Option(dir_okay=False, help="Experience bank of AscendOptimizer.")]
EmbedderName = Annotated[
    str, typer.Option(help="'lexical', 'minilm', or an embedding model at the endpoint.")
]
Checkpoint = Annotated[
    Path | None, typer.Option(file_okay=False, exists=True, help="Folder of 'ascend-gym train', for ppo.")
]
TilingSteps = Annotated[int | None, typer.Option(min=1, help="Evaluations per pass of tiling search.")]
RefineSteps = Annotated[int | None, typer.Option(min=1, help="Evaluations per pass of kernel refinement.")]
RewindSteps = Annotated[
    int | None,
    typer.Option(min=0, help="Evaluations spent first on rewinding the operator itself."),
]
LoweringOption = Annotated[
    Lowering, typer.Option("--lowering", help="Who translates the programs of AscendCraft.")
]
ExamplesOption = Annotated[
    Examples, typer.Option("--examples", help="Example that is shown for an operator without sources.")
]
PassBuilds = Annotated[bool, typer.Option(help="Build after each pass of a model, for AscendCraft.")]
LeaveOneOut = Annotated[
    bool, typer.Option(help="Leave out experience with the operator itself and its near twins.")
]
