"""Experiment loggers behind one callback: TensorBoard, offline Weights & Biases, MLflow.

Each run of a sweep is a run of the logger, and each evaluation a step: ``speedup`` and
``best_latency_us`` over charged evaluations. The packages are imported on demand; the extra ``loggers``
installs them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from ascend_gym.core.errors import MisuseError
from ascend_gym.sweep.jobs import RunStep, SweepJob, Update

METRICS = ("speedup", "best_latency_us")


class LoggerName(str, Enum):
    """The experiment loggers."""

    TENSORBOARD = "tensorboard"
    WANDB = "wandb"
    MLFLOW = "mlflow"


class ExperimentLogger(Protocol):
    """Interface of experiment loggers."""

    def step(self, job: SweepJob, step: RunStep) -> None:
        """Log one evaluation of a run; called once per evaluation, in order."""

    def close(self) -> None:
        """Flush and close."""


class LoggingCallback:
    """Forwards the evaluations of updates to loggers, except those that an earlier process has logged.

    Args:
        jobs: runs by id.
        logged: number of the last evaluation of each run that an earlier process has logged; -1 for none.
        loggers: experiment loggers.
    """

    def __init__(
        self, jobs: Mapping[str, SweepJob], logged: Mapping[str, int], loggers: tuple[ExperimentLogger, ...]
    ) -> None:
        self._jobs, self._logged, self._loggers = jobs, dict(logged), loggers

    def __call__(self, update: Update) -> None:
        """Log the new evaluations of an update."""
        for step in update.steps:
            if step.index > self._logged[update.job_id]:
                self._logged[update.job_id] = step.index
                for logger in self._loggers:
                    logger.step(self._jobs[update.job_id], step)

    def close(self) -> None:
        """Close the loggers."""
        for logger in self._loggers:
            logger.close()


def logger_named(name: LoggerName, folder: Path) -> ExperimentLogger:
    """Open a logger that writes below ``folder``.

    Raises:
        MisuseError: its package is not installed.
    """
    return _LOGGERS[name](folder / name.value)


class TensorBoardLogger:
    """Writes event files with tensorboardX, one folder per run."""

    def __init__(self, folder: Path) -> None:
        self._module, self._folder = _imported("tensorboardX"), folder
        self._writers: dict[str, Any] = {}

    def step(self, job: SweepJob, step: RunStep) -> None:
        """Log one evaluation."""
        if job.job_id not in self._writers:
            self._writers[job.job_id] = self._module.SummaryWriter(str(self._folder / job.job_id))
        for name, value in _metrics(step).items():
            self._writers[job.job_id].add_scalar(name, value, step.spent_evaluations)

    def close(self) -> None:
        """Close the event files."""
        for writer in self._writers.values():
            writer.close()


class WandbLogger:
    """Writes offline runs, which ``wandb sync`` can upload."""

    def __init__(self, folder: Path) -> None:
        self._module, self._folder = _imported("wandb"), folder
        self._runs: dict[str, Any] = {}

    def step(self, job: SweepJob, step: RunStep) -> None:
        """Log one evaluation."""
        if job.job_id not in self._runs:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._runs[job.job_id] = self._module.init(
                project="ascend-gym",
                name=job.job_id,
                dir=str(self._folder),
                mode="offline",
                config=_settings(job),
                reinit="create_new",
            )
        self._runs[job.job_id].log({**_metrics(step), "spent_evaluations": step.spent_evaluations})

    def close(self) -> None:
        """End the runs."""
        for run in self._runs.values():
            run.finish()


class MlflowLogger:
    """Writes runs into a local SQLite file."""

    def __init__(self, folder: Path) -> None:
        module = _imported("mlflow")
        folder.mkdir(parents=True, exist_ok=True)
        self._client = module.MlflowClient(tracking_uri=f"sqlite:///{(folder / 'mlflow.db').resolve()}")
        known = self._client.get_experiment_by_name("ascend-gym")
        self._experiment = known.experiment_id if known else self._client.create_experiment("ascend-gym")
        self._runs: dict[str, str] = {}

    def step(self, job: SweepJob, step: RunStep) -> None:
        """Log one evaluation."""
        if job.job_id not in self._runs:
            run_id = self._client.create_run(self._experiment, run_name=job.job_id).info.run_id
            for name, value in _settings(job).items():
                self._client.log_param(run_id, name, value)
            self._runs[job.job_id] = run_id
        for name, value in _metrics(step).items():
            self._client.log_metric(self._runs[job.job_id], name, value, step=step.spent_evaluations)

    def close(self) -> None:
        """End the runs."""
        for run_id in self._runs.values():
            self._client.set_terminated(run_id)


_LOGGERS: dict[LoggerName, Callable[[Path], ExperimentLogger]] = {
    LoggerName.TENSORBOARD: TensorBoardLogger,
    LoggerName.WANDB: WandbLogger,
    LoggerName.MLFLOW: MlflowLogger,
}


def _metrics(step: RunStep) -> dict[str, float]:
    values = {name: getattr(step, name) for name in METRICS}
    return {name: value for name, value in values.items() if value is not None}


def _settings(job: SweepJob) -> dict[str, Any]:
    return {name: value for name, value in asdict(job).items() if name not in ("settings", "job_id")}


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MisuseError(f"{name} is not installed: pip install 'ascend-gym[loggers]'") from error
