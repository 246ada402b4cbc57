"""Experiment loggers: each evaluation is logged once, and files are written that the packages read."""

import sys

import pytest
from sweeping import make_job

from ascend_gym.core.errors import MisuseError
from ascend_gym.sweep.jobs import RunStep, Update
from ascend_gym.sweep.loggers import LoggerName, LoggingCallback, logger_named

JOB = make_job(3)
STEPS = [
    RunStep(0, "ok", 0, 100.0, 100.0),
    RunStep(1, "timeout", 1, 100.0, 100.0),
    RunStep(2, "ok", 2, 100.0, 50.0),
]


class Recorder:
    def __init__(self):
        self.seen, self.closed = [], False

    def step(self, job, step):
        self.seen.append((job.seed, step.index, step.speedup))

    def close(self):
        self.closed = True


def _update(*steps):
    return Update(JOB.job_id, 1, "here", steps=tuple(steps))


def test_steps_that_are_told_again_are_logged_once():
    recorder = Recorder()
    callback = LoggingCallback({JOB.job_id: JOB}, {JOB.job_id: 0}, (recorder,))
    callback(_update(*STEPS[:2]))
    callback(_update(*STEPS))
    callback.close()
    assert recorder.seen == [(3, 1, 1.0), (3, 2, 2.0)]
    assert recorder.closed


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(
        MisuseError, match=r"tensorboardX is not installed: pip install 'ascend-gym\[loggers\]'"
    ):
        logger_named(LoggerName.TENSORBOARD, tmp_path)


@pytest.mark.parametrize(
    ("name", "package"),
    [(LoggerName.TENSORBOARD, "tensorboardX"), (LoggerName.WANDB, "wandb"), (LoggerName.MLFLOW, "mlflow")],
)
def test_loggers_write_files(tmp_path, name, package):
    pytest.importorskip(package)
    logger = logger_named(name, tmp_path)
    for step in STEPS:
        logger.step(JOB, step)
    logger.close()
    files = [path for path in (tmp_path / name.value).rglob("*") if path.is_file()]
    assert any(path.stat().st_size for path in files)
    if name is LoggerName.MLFLOW:
        import mlflow

        client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow' / 'mlflow.db'}")
        (run,) = client.search_runs(client.get_experiment_by_name("ascend-gym").experiment_id)
        history = client.get_metric_history(run.info.run_id, "speedup")
        assert [(metric.step, metric.value) for metric in history] == [(0, 1.0), (1, 1.0), (2, 2.0)]
        assert run.data.params["seed"] == "3"
