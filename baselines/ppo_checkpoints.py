"""Iterations of a training and their checkpoints: complete folders, numbered. Needs no other package."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from ascend_gym.core.errors import MisuseError

EPISODES = 10
"""Complete episodes of an iteration, at least."""
CHECKPOINTS_FOLDER = "checkpoints"
PROGRESS_NAME = "progress.json"
POLICY_NAME = "policy.pt"
"""File of the trained policy in a checkpoint."""


@dataclass(frozen=True)
class Progress:
    """How far a training got.

    Attributes:
        iterations: updates so far.
        evaluations: evaluations so far.
        seconds: wall seconds so far.
        mean_speedup: geometric mean of the final speedups of the last episodes.
    """

    iterations: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    mean_speedup: float = 1.0


def episodes_per_runner(runners: int) -> int:
    """Return the episodes that each of so many processes plays in an iteration; 0 is the training's own."""
    return math.ceil(EPISODES / max(1, runners))


def evaluations_per_iteration(runners: int, budget: int) -> int:
    """Return the evaluations of an iteration: all its episodes from beginning to end."""
    return episodes_per_runner(runners) * max(1, runners) * budget


def require_one_iteration(evaluations: int, runners: int, budget: int) -> None:
    """Check that a training can make an iteration.

    Raises:
        MisuseError: the evaluations are too few.
    """
    least = evaluations_per_iteration(runners, budget)
    if evaluations < least:
        raise MisuseError(
            f"one iteration takes {least} evaluations, got {evaluations}: allow more, or lower the "
            f"budget of an episode, {budget}"
        )


def last_checkpoint(folder: Path) -> Path | None:
    """Return the checkpoint of the latest iteration in the folder of a training, or ``None``."""
    return max((folder / CHECKPOINTS_FOLDER).glob("[0-9]*"), default=None)


@contextmanager
def new_checkpoint(folder: Path, iteration: int) -> Iterator[Path]:
    """Yield a folder that becomes the checkpoint of an iteration when the block ends well."""
    final = folder / CHECKPOINTS_FOLDER / f"{iteration:06d}"
    unfinished = final.with_name(f".{final.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    yield unfinished
    unfinished.rename(final)


def write_progress(checkpoint: Path, progress: Progress) -> None:
    """Write how far the training was."""
    (checkpoint / PROGRESS_NAME).write_text(json.dumps(asdict(progress), indent=2) + "\n")


def read_progress(checkpoint: Path) -> Progress:
    """Read how far the training was.

    Raises:
        MisuseError: the folder is no checkpoint.
    """
    try:
        return Progress(**json.loads((checkpoint / PROGRESS_NAME).read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise MisuseError(f"{checkpoint} is no checkpoint of a training: {error}") from error


def policy_path(folder: Path) -> Path:
    """Return the policy in a checkpoint, or the latest in the folder of a training.

    Raises:
        MisuseError: there is none.
    """
    checkpoint = last_checkpoint(folder) or folder
    if not (checkpoint / POLICY_NAME).is_file():
        raise MisuseError(f"{folder} holds no checkpoint of 'ascend-gym train'")
    return checkpoint / POLICY_NAME


def policy_digest(folder: Path) -> str:
    """Return the SHA-256 of the policy that ``policy_path`` finds, as hexadecimal digits.

    Raises:
        MisuseError: there is none, or it cannot be read.
    """
    path = policy_path(folder)
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise MisuseError(f"the policy cannot be read: {error}") from error
