"""Sweeps on a real Ray of this host: the same outcome as without, and no killed worker costs a result."""

import os
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest
from daemon_processes import PYTHONPATH
from sweeping import Swept, make_job, parent_of, unbroken_journals

from ascend_gym.core.config import set_up_own_ray
from ascend_gym.sweep.jobs import RunEnding
from ascend_gym.sweep.ray_executor import RayExecutor, connected_ray

if find_spec("ray") is None:  # not importorskip: Ray reads its settings when it is imported
    pytest.skip("needs the extra sweep", allow_module_level=True)

set_up_own_ray()


@pytest.fixture(scope="module")
def ray():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", PYTHONPATH)  # workers import fake_sweep_child
        with connected_ray("local", 2) as connected:
            yield connected


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    return unbroken_journals(tmp_path_factory.mktemp("unbroken"), range(3))


@pytest.fixture
def executor(ray):
    opened = RayExecutor(ray)
    yield opened
    opened.close()


def test_ray_makes_the_same_runs(tmp_path, executor, unbroken):
    swept = Swept(tmp_path, [make_job(seed) for seed in range(3)], executor).run()
    assert swept.endings() == ["finished"] * 3
    assert swept.journals() == unbroken
    assert executor.capacity() == 2


def test_never_more_runs_than_units(tmp_path, ray, executor, unbroken):
    seen = []
    jobs = [make_job(seed) for seed in range(3)]
    swept = Swept(tmp_path, jobs, executor, on_update=lambda _: seen.append(len(swept.state.running)))
    assert swept.run().journals() == unbroken
    assert 1 <= max(seen) <= 2


def test_a_killed_worker_costs_nothing(tmp_path, executor, unbroken):
    """The child of a killed worker ends with it; the run goes on in another from the driver's journal."""
    fifo, server, killed = tmp_path / "fifo", tmp_path / "server", []
    os.mkfifo(fifo)

    def kill_worker(update):
        if update.steps and not killed:
            killed.append(parent_of(server.read_text()))
            assert b"RunActor" in Path(f"/proc/{killed[0]}/cmdline").read_bytes()
            fifo.unlink()
            os.kill(killed[0], signal.SIGKILL)

    jobs = [make_job(0, wait=str(fifo), note_server=str(server))]
    sweep = Swept(tmp_path / "sweep", jobs, executor, on_update=kill_worker)
    assert sweep.run().journals() == unbroken[:1]
    ends = [update.end.ending for update in sweep.updates if update.end]
    assert ends == [RunEnding.LOST, RunEnding.FINISHED]


def test_ctrl_c_reaches_runs_on_ray(tmp_path, executor, unbroken):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def interrupt(update):
        if update.steps:
            signal.raise_signal(signal.SIGINT)

    sweep = Swept(tmp_path / "sweep", [make_job(0, wait=str(fifo))], executor, on_update=interrupt).run()
    assert sweep.endings() == ["interrupted"]
    assert unbroken[0].startswith(sweep.journals()[0])
    assert [update.end.ending for update in sweep.updates if update.end] == [RunEnding.INTERRUPTED]
