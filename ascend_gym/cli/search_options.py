"""Options of searches, which ``optimize``, ``resume`` and ``sweep`` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agents.ascend_craft.settings import Lowering
from agents.ascend_optimizer.settings import Ablation, Preset, Schedule
from ascend_gym.search.driver import Duplicates
from ascend_gym.staged.examples import Examples

# What a run may spend; every run of a sweep.
DeviceSeconds = Annotated[float | None, typer.Option(help="Device time that a run may spend.")]
Tokens = Annotated[int | None, typer.Option(help="Tokens that models may read and write in a run.")]
Usd = Annotated[float | None, typer.Option(help="US dollars that models may cost in a run.")]
PriceOption = Annotated[
    str | None,
    typer.Option("--price", metavar="IN,OUT", help="US dollars per million tokens read and written."),
]
Builds = Annotated[int | None, typer.Option(help="Builds without an evaluation that AscendCraft may spend.")]
DuplicatesOption = Annotated[
    Duplicates, typer.Option("--duplicates", help="What a candidate costs that the run knows already.")
]

# Which models are asked, and how they are reached.
OfflineModel = Annotated[str | None, typer.Option(help="Model of what is prepared once; default --model.")]
MaxTokens = Annotated[int, typer.Option(min=1, help="Limit of an answer's length, reasoning included.")]
Timeout = Annotated[float, typer.Option(min=1.0, help="Seconds for one answer of a model.")]
Temperature = Annotated[float | None, typer.Option(help="Sampling temperature.")]
ReasoningEffort = Annotated[
    str | None, typer.Option(help="How much a model may reason, such as low, medium or high.")
]
BaseUrl = Annotated[str | None, typer.Option(help="Endpoint in the OpenAI format; default $OPENAI_BASE_URL.")]
Concurrency = Annotated[int, typer.Option(min=1, help="Questions of a run under way at a time.")]
RequestsPerMinute = Annotated[
    int | None, typer.Option(min=1, help="Questions of a run to each model a minute.")
]
TokensPerMinute = Annotated[int | None, typer.Option(min=1, help="Tokens of a run, of each model a minute.")]
Cassette = Annotated[
    Path | None, typer.Option(dir_okay=False, help="File of answers to take from and to add to.")
]
Replay = Annotated[bool, typer.Option("--replay", help="Take all answers from --cassette; ask nobody.")]
InFlight = Annotated[int, typer.Option(min=1, help="Evaluations of a run under way at a time.")]

# What single methods are told.
ScheduleOption = Annotated[Schedule, typer.Option("--schedule", help="Order of AscendOptimizer's stages.")]
PresetOption = Annotated[
    Preset | None, typer.Option("--preset", help="Schedule of a paper, for AscendOptimizer.")
]
Ablate = Annotated[
    list[Ablation] | None, typer.Option(help="What AscendOptimizer goes without; may be repeated.")
]
Bank = Annotated[Path | None, typer.Option(dir_okay=False, help="Experience bank of AscendOptimizer.")]
EmbedderName = Annotated[
    str, typer.Option(help="'lexical', 'minilm', or an embedding model at the endpoint.")
]
Checkpoint = Annotated[
    Path | None, typer.Option(file_okay=False, exists=True, help="Folder of 'ascend-gym train', for ppo.")
]
TilingSteps = Annotated[int | None, typer.Option(min=1, help="Length of a tiling search.")]
RefineSteps = Annotated[int | None, typer.Option(min=1, help="Length of a kernel refinement.")]
RewindSteps = Annotated[
    int | None,
    typer.Option(min=0, help="Evaluations spent first on rewinding the operator itself, to learn from it."),
]
LoweringOption = Annotated[
    Lowering, typer.Option("--lowering", help="Who translates the programs of AscendCraft.")
]
ExamplesOption = Annotated[
    Examples, typer.Option("--examples", help="Example that is shown for an operator without sources.")
]
PassBuilds = Annotated[bool, typer.Option(help="Build after each pass of a model, for AscendCraft.")]
LeaveOneOut = Annotated[
    bool, typer.Option(help="Leave experience with the operator itself, and its near twins, out.")
]
