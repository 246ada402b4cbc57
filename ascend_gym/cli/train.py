"""``ascend-gym train``: train a policy with PPO on several operators, or resume a training."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel, ConfigDict, Field

from ascend_gym.cli.methods import needing_training_packages
from ascend_gym.cli.options import EXIT_INTERRUPTED, Chip, Daemon, note, opened_daemons
from ascend_gym.core.append_log import write_whole
from ascend_gym.core.chips import require_chip
from ascend_gym.core.config import set_up_own_ray
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.option_groups import grouped
from ascend_gym.core.records import OpSpec
from ascend_gym.suite.loader import list_operators, load_operator
from baselines.ppo_checkpoints import Progress, last_checkpoint, require_one_iteration

SETTINGS_NAME = "training.json"

Evaluations = Annotated[int, typer.Option(min=1, help="Evaluations of the whole training.")]


class ActionsOfPpo(str, Enum):
    """Action families that PPO can train on."""

    RULES = "rules"
    KNOBS = "knobs"


class TrainingSettings(BaseModel):
    """All settings that affect the outcome of a training, except its length.

    Attributes:
        operators: names or ids of the operators; none means only those of ``op_dirs``.
        op_dirs: folders of operators outside the suites.
        family: action family.
        budget: evaluations per episode.
        cases: number of cases to evaluate per operator, the smallest first; ``None`` for all.
        chip: simulated or measured chip.
        seed: seed of the training.
        runners: processes that play episodes; 0 plays in the training process.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    operators: tuple[str, ...]
    op_dirs: tuple[str, ...] = ()
    family: ActionsOfPpo = ActionsOfPpo.RULES
    budget: int = Field(default=20, ge=1)
    cases: int | None = Field(default=None, ge=1)
    chip: str = "910B2"
    seed: int = 0
    runners: int = Field(default=0, ge=0)


@dataclass(frozen=True)
class _Training:
    """What is trained."""

    suite: Annotated[str, typer.Option(help="Suite to train on, unless --operators names them.")] = "core"
    operators: Annotated[str | None, typer.Option(metavar="A,B,C", help="Operators to train on.")] = None
    op_dir: Annotated[
        list[Path] | None, typer.Option(exists=True, file_okay=False, help="Folder of a further operator.")
    ] = None
    family: Annotated[ActionsOfPpo, typer.Option(help="Action family.")] = ActionsOfPpo.RULES
    budget: Annotated[int, typer.Option(min=1, help="Evaluations per episode.")] = 20
    cases: Annotated[
        int | None, typer.Option(min=1, help="Evaluate on this many cases, the smallest first; default all.")
    ] = None
    seed: Annotated[int, typer.Option(help="Seed of the training.")] = 0
    chip: Chip = "910B2"
    runners: Annotated[int, typer.Option(min=0, help="Processes that play episodes; 0: this one.")] = 0

    def settings(self) -> TrainingSettings:
        """Return the settings of a training with operators by name."""
        named = self.operators.split(",") if self.operators else []
        return TrainingSettings(
            operators=tuple(named or ([] if self.op_dir else _names_of(self.suite))),
            op_dirs=tuple(str(folder.resolve()) for folder in self.op_dir or ()),
            family=self.family,
            budget=self.budget,
            cases=self.cases,
            chip=self.chip,
            seed=self.seed,
            runners=self.runners,
        )


@grouped
def train(
    training: _Training,
    evaluations: Evaluations = 4000,
    daemon: Daemon = None,
    out: Annotated[
        Path | None, typer.Option(help="New folder for checkpoints and events; default below runs/.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Resume the training in DIR.")
    ] = None,
) -> None:
    """Train a policy on several operators with PPO, for 'ascend-gym optimize --method ppo'."""
    from ascend_gym.report.run_folder import new_run_folder

    if resume is not None:
        if out is not None:
            raise MisuseError("--out is for a new training, --resume continues one: give only one of them")
        _run(_read_settings(resume), resume, evaluations, daemon)
        return
    settings = training.settings()
    _loaded(settings)  # before a folder is made
    require_one_iteration(evaluations, settings.runners, settings.budget)
    folder = new_run_folder(out, f"ppo-{settings.family.value}-seed{settings.seed}")
    write_whole(folder / SETTINGS_NAME, f"{settings.model_dump_json(indent=2)}\n".encode())
    _run(settings, folder, evaluations, daemon)


def _run(settings: TrainingSettings, folder: Path, evaluations: int, daemon: list[str] | None) -> None:
    require_one_iteration(evaluations, settings.runners, settings.budget)  # before Ray takes its time
    require_chip(settings.chip)
    set_up_own_ray()
    with needing_training_packages("training"):
        from baselines.ppo import Training
        from baselines.ppo import train as train_policy
    specs = _loaded(settings)
    with opened_daemons(daemon, settings.chip) as addresses:
        training = Training(
            specs,
            addresses,
            family=settings.family.value,
            budget=settings.budget,
            cases=settings.cases,
            chip=settings.chip,
            seed=settings.seed,
            runners=settings.runners,
        )
        try:
            done = train_policy(training, folder, evaluations, lambda now: note(_line(now, evaluations)))
        except KeyboardInterrupt:
            kept = last_checkpoint(folder)
            again = ["ascend-gym", "train", "--resume", str(folder), "--evaluations", str(evaluations)]
            resume = shlex.join(again + [word for address in daemon or () for word in ("--daemon", address)])
            note(f"ascend-gym: interrupted; to continue from {kept or 'the beginning'}: {resume}")
            raise typer.Exit(EXIT_INTERRUPTED) from None
    typer.echo(f"{done.evaluations} evaluations in {done.iterations} iterations: {last_checkpoint(folder)}")


def _line(now: Progress, evaluations: int) -> str:
    rate = now.evaluations / max(1e-9, now.seconds)
    left_min = max(0, evaluations - now.evaluations) / rate / 60
    return (
        f"iteration {now.iterations}: {now.evaluations} of {evaluations} evaluations, "
        f"mean speedup {now.mean_speedup:.3f}, {rate:.1f} evaluations/s, {left_min:.0f} min left"
    )


def _names_of(suite: str) -> list[str]:
    return [spec.op_id for spec in list_operators(suite)]


def _loaded(settings: TrainingSettings) -> list[OpSpec]:
    """Load the operators of a training.

    Raises:
        MisuseError: one does not exist, or there are none.
    """
    folders = [Path(folder) for folder in settings.op_dirs]
    specs = [load_operator(name) for name in settings.operators]
    specs += [load_operator(folder.name, op_dir=folder) for folder in folders]
    if not specs:
        raise MisuseError("there is no operator to train on: name some with --operators or --op-dir")
    return specs


def _read_settings(folder: Path) -> TrainingSettings:
    try:
        return TrainingSettings.model_validate_json((folder / SETTINGS_NAME).read_bytes())
    except (OSError, ValueError) as error:
        raise MisuseError(f"{folder} is not the folder of a training: {error}") from error
