"""PPO over many operators with RLlib's current API stack. Needs Ray and PyTorch.

One policy learns on several operators at once: each episode draws one of them and has a budget of
evaluations; the reward is the logarithm of the improvement, so that returns add up to the logarithm of the
final speedup. All episodes of a runner advance together, and their candidates go to one daemon at once, which
remembers what it has measured.

An iteration is ``EPISODES`` complete episodes and an update; after each, a checkpoint is written. Training
goes on from the last checkpoint with weights and optimizer state as they were; episodes then draw other
numbers than they would have without the break.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from tensorboardX import SummaryWriter

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.interrupts import raise_if_interrupted
from ascend_gym.core.records import OpSpec
from ascend_gym.search.seeds import derived_seed
from ascend_gym.sweep.ray_executor import LOCAL, begin_ray
from baselines.ppo_checkpoints import (
    EPISODES,
    Progress,
    episodes_per_runner,
    evaluations_per_iteration,
    last_checkpoint,
    new_checkpoint,
    read_progress,
    require_one_iteration,
    write_progress,
)
from baselines.ppo_module import PolicyModule
from baselines.ppo_policy import OBSERVATIONS, save_policy

ENVIRONMENT = "ascend_gym:AscendOp-v0"  # with the module's name, remote runners find it too
ALGORITHM_FOLDER = "algorithm"
TENSORBOARD_FOLDER = "tensorboard"

_SAMPLE_TIMEOUT_S = 24 * 3600.0  # evaluations are compilations: the daemon bounds them, not RLlib
_HYPERPARAMETERS: dict[str, Any] = {
    "gamma": 0.8,
    "lambda_": 0.8,
    "lr": 2e-3,
    "num_epochs": 10,
    "clip_param": 0.2,
    "use_kl_loss": False,
    "vf_loss_coeff": 0.5,
    "entropy_coeff": 0.002,
    "grad_clip": 0.5,
}
_MINIBATCHES = 4  # an epoch's
_LOSSES = ("policy_loss", "vf_loss", "entropy", "vf_explained_var")


@dataclass(frozen=True)
class Training:
    """What is trained.

    Attributes:
        operators: the operators to learn on.
        daemons: addresses of the daemons that all runners share.
        family: action family, ``rules`` or ``knobs``.
        budget: evaluations of an episode.
        cases: evaluate on so many cases of an operator, the smallest first; ``None`` for all.
        chip: the chip whose cycles are counted.
        seed: seed of weights, random draws and operators.
        runners: processes that play episodes; 0 plays in this one.
    """

    operators: Sequence[OpSpec]
    daemons: Sequence[str]
    family: str = "rules"
    budget: int = 20
    cases: int | None = None
    chip: str = "910B2"
    seed: int = 0
    runners: int = 0

    @property
    def episodes_per_runner(self) -> int:
        """Episodes that each runner plays at a time."""
        return episodes_per_runner(self.runners)

    @property
    def evaluations_per_iteration(self) -> int:
        """Evaluations of an iteration: all its episodes from beginning to end."""
        return evaluations_per_iteration(self.runners, self.budget)


def train(
    training: Training, folder: Path, evaluations: int, on_iteration: Callable[[Progress], None]
) -> Progress:
    """Train, or go on with training, until another iteration would take more than ``evaluations`` in all.

    Args:
        training: what is trained.
        folder: an existing folder; takes checkpoints and TensorBoard's event files.
        evaluations: evaluations of the whole training, those of earlier runs included.
        on_iteration: called after each checkpoint.

    Returns:
        How far it got.

    Raises:
        MisuseError: the evaluations are too few for one iteration.
        InfrastructureError: nothing can be evaluated, or a runner died.
    """
    require_one_iteration(evaluations, training.runners, training.budget)
    found = last_checkpoint(folder)
    progress = read_progress(found) if found else Progress()
    with _ray_for(training.runners), _failures_explained():
        algorithm = _config(training).build_algo()
        try:
            if found is not None:
                algorithm.restore_from_path(str((found / ALGORITHM_FOLDER).resolve()))
            with SummaryWriter(str(folder / TENSORBOARD_FOLDER)) as events:
                while progress.evaluations + training.evaluations_per_iteration <= evaluations:
                    raise_if_interrupted()
                    progress = _iterate(algorithm, training, progress, folder, events)
                    on_iteration(progress)
        finally:
            algorithm.stop()
    return progress


def _iterate(
    algorithm: Any, training: Training, before: Progress, folder: Path, events: SummaryWriter
) -> Progress:
    """Play the episodes of an iteration, learn from them, write a checkpoint."""
    began_s = time.monotonic()
    result = algorithm.train()
    played = result["env_runners"]
    progress = Progress(
        iterations=before.iterations + 1,
        evaluations=before.evaluations + round(played["num_env_steps_sampled"]),
        seconds=before.seconds + time.monotonic() - began_s,
        mean_speedup=math.exp(played["episode_return_mean"]),
    )
    _log(events, result, progress)
    with new_checkpoint(folder, progress.iterations) as checkpoint:
        algorithm.save_to_path(str((checkpoint / ALGORITHM_FOLDER).resolve()))
        weights = algorithm.get_module().network.state_dict()
        save_policy(checkpoint, training.family, weights)
        write_progress(checkpoint, progress)
    return progress


def _log(events: SummaryWriter, result: dict[str, Any], progress: Progress) -> None:
    """Write the figures of an iteration as TensorBoard's events, over evaluations."""
    figures = {f"training/{name}": value for name, value in asdict(progress).items()}
    learnt = result["learners"][DEFAULT_MODULE_ID]
    figures |= {f"learner/{name}": learnt[name] for name in _LOSSES}
    figures |= {f"speedup/{operator}": value for operator, value in result["env_runners"]["speedup"].items()}
    for name, value in figures.items():
        if math.isfinite(value):  # an operator that was not drawn has none
            events.add_scalar(name, float(value), progress.evaluations)
    events.flush()


class SpeedupPerOperator(RLlibCallback):
    """Keeps the final speedup of the episodes, by operator."""

    def on_episode_end(self, *, episode: Any, metrics_logger: Any, **kwargs: Any) -> None:
        """Take over the return of an episode, the logarithm of its final speedup."""
        operator = episode.get_infos(-1)["operator"].replace("/", ".")
        metrics_logger.log_value(("speedup", operator), math.exp(episode.get_return()), window=EPISODES)


def _config(training: Training) -> PPOConfig:
    return (
        PPOConfig()
        .environment(
            ENVIRONMENT,
            env_config={
                "operator": list(training.operators),
                "actions": training.family,
                "observations": OBSERVATIONS[training.family],
                "budget": training.budget,
                "cases": training.cases,
                "chip": training.chip,
                "daemon": list(training.daemons),
            },
        )
        .env_runners(
            num_env_runners=training.runners,
            num_envs_per_env_runner=training.episodes_per_runner,
            gym_env_vectorize_mode="vector_entry_point",
            rollout_fragment_length=training.budget,
            sample_timeout_s=_SAMPLE_TIMEOUT_S,
        )
        .learners(num_learners=0)
        .fault_tolerance(restart_failed_env_runners=False)
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=PolicyModule,
                model_config={
                    "family": training.family,
                    "seed": derived_seed(training.seed, "ppo weights"),
                },
            )
        )
        .training(
            train_batch_size_per_learner=training.evaluations_per_iteration,
            minibatch_size=training.evaluations_per_iteration // _MINIBATCHES,
            **_HYPERPARAMETERS,
        )
        .reporting(metrics_num_episodes_for_smoothing=EPISODES)
        .callbacks(SpeedupPerOperator)
        .debugging(seed=training.seed, log_level="ERROR")
    )


@contextmanager
def _ray_for(runners: int) -> Iterator[None]:
    """Have Ray for the time being: the caller's, or one of our own on this machine."""
    if ray.is_initialized():
        yield
        return
    begin_ray(ray, LOCAL, num_cpus=runners + 1, include_dashboard=False)
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _failures_explained() -> Iterator[None]:
    """Turn failures of Ray into what they mean for the caller."""
    try:
        yield
    except ray.exceptions.RayError as error:
        raise InfrastructureError(f"a runner of the training failed: {error}") from error
