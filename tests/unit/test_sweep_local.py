"""Sweeps on processes of this host: runs that die, daemons that fail, Ctrl-C."""

import os
import signal
from pathlib import Path

import pytest
from sweeping import Swept, make_job, unbroken_journals

from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.sweep.executors import LocalExecutor
from ascend_gym.sweep.jobs import RunEnding
from ascend_gym.sweep.run_folders import RunFolders
from ascend_gym.sweep.run_reader import read_run
from ascend_gym.sweep.sweep_state import ATTEMPTS_WITHOUT_PROGRESS, DaemonSlots

pytestmark = pytest.mark.slow


@pytest.fixture
def executor():
    opened = LocalExecutor(2)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    return unbroken_journals(tmp_path_factory.mktemp("unbroken"), range(2))


def test_runs_end_and_their_folders_hold_all(tmp_path, executor, unbroken):
    swept = Swept(tmp_path / "sweep", [make_job(0), make_job(1)], executor).run()
    assert swept.endings() == ["finished", "finished"]
    assert swept.journals() == unbroken
    state = swept.state.jobs["best-of-n/toy/seed0"]
    assert (state.index, state.spent_evaluations, state.speedup, state.attempt) == (4, 4, pytest.approx(2), 1)
    folder = swept.folders.folder(state.job)
    assert (folder / "best.diff").read_text() == "// latency: 50\n"
    assert read_run(folder).run.finished
    assert len(swept.ended) == 2


def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path, executor, unbroken):
    jobs = [make_job(0, die_once=str(tmp_path / "died")), make_job(1)]
    swept = Swept(tmp_path / "sweep", jobs, executor).run()
    assert swept.endings() == ["finished", "finished"]
    assert swept.journals() == unbroken
    assert swept.state.jobs[jobs[0].job_id].attempt == 2
    ends = [update.end.ending for update in swept.updates if update.end and update.job_id == jobs[0].job_id]
    assert ends == [RunEnding.LOST, RunEnding.FINISHED]


def test_runs_in_one_place_are_forked_from_one_process(tmp_path):
    executor = LocalExecutor(1)
    notes = [tmp_path / str(seed) for seed in range(3)]
    jobs = [make_job(seed, note_server=str(note)) for seed, note in enumerate(notes)]
    swept = Swept(tmp_path / "sweep", jobs, executor, [DaemonSlots(None, runs=1)]).run()
    executor.close()
    assert swept.endings() == ["finished"] * 3
    (server,) = {note.read_text() for note in notes}
    assert not Path(f"/proc/{server}").exists(), "it ends with the executor"


def test_a_run_that_cannot_be_made_is_not_tried_again(tmp_path, executor):
    swept = Swept(tmp_path, [make_job(0, refuse=True)], executor).run()
    (state,) = swept.state.jobs.values()
    assert (state.attempt, state.end.ending) == (1, RunEnding.REFUSED)
    assert "no such method" in state.end.message


def test_a_run_moves_to_a_daemon_that_answers(tmp_path, executor, unbroken):
    daemons = [DaemonSlots("ipc://broken", runs=2), DaemonSlots("ipc://good", runs=2)]
    jobs = [make_job(seed, unreachable="ipc://broken") for seed in (0, 1)]
    swept = Swept(tmp_path / "sweep", jobs, executor, daemons).run()
    assert swept.endings() == ["finished", "finished"]
    assert swept.journals() == unbroken
    assert daemons[0].failures > 0
    assert [daemon.running for daemon in daemons] == [0, 0]


def test_ctrl_c_keeps_what_was_found_and_the_sweep_goes_on_later(tmp_path, executor, unbroken):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    jobs = [make_job(0, wait=str(fifo))]

    def interrupt(update):
        if update.steps:
            signal.raise_signal(signal.SIGINT)

    swept = Swept(tmp_path / "sweep", jobs, executor, on_update=interrupt).run()
    assert swept.endings() == ["interrupted"]
    known = swept.journals()[0]
    assert known
    assert unbroken[0].startswith(known)
    again = Swept(tmp_path / "sweep2", [make_job(0)], executor)
    for name in ("journal.jsonl", "timings.jsonl"):
        source = swept.folders.folder(jobs[0]) / name
        (again.folders.folder(jobs[0]) / name).write_bytes(source.read_bytes())
    assert again.run().journals() == unbroken[:1]


def test_a_run_that_ends_without_a_word_once_it_is_told_to_stop_is_not_lost(tmp_path, executor):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def interrupt(update):
        if update.steps:
            signal.raise_signal(signal.SIGINT)

    jobs = [make_job(0, wait=str(fifo), vanish=True)]
    swept = Swept(tmp_path / "sweep", jobs, executor, on_update=interrupt).run()
    ends = [update.end for update in swept.updates if update.end is not None]
    assert [end.ending.value for end in ends] == ["interrupted"]


def test_a_folder_holds_one_run(tmp_path):
    folders = RunFolders(tmp_path)
    folders.begin(make_job(0))
    folders.begin(make_job(0))
    with pytest.raises(MisuseError, match="holds a run of other settings"):
        folders.begin(make_job(0, refuse=True))


def test_daemons_that_stay_away_end_the_sweep(tmp_path, executor):
    daemon = DaemonSlots("ipc://broken", runs=1, failures=ATTEMPTS_WITHOUT_PROGRESS - 1)
    jobs = [make_job(seed, unreachable="ipc://broken") for seed in (0, 1)]
    swept = Swept(tmp_path, jobs, executor, [daemon]).run()
    assert swept.endings() == ["infrastructure", "infrastructure"]
    assert len(swept.ended) == 1


class LostCluster:
    """An executor whose hosts are gone once a run has begun."""

    def __init__(self):
        self.begun = []

    def capacity(self):
        return 1

    def start(self, task):
        self.begun.append(task.job.job_id)

    def updates(self, timeout_s):
        raise InfrastructureError("the Ray cluster is gone")

    stop_all = close = updates


def test_a_sweep_whose_hosts_are_gone_ends_with_the_reason_and_reports_what_was_under_way(tmp_path):
    jobs = [make_job(0), make_job(1)]
    sweep = Swept(tmp_path, jobs, LostCluster()).run()
    assert sweep.endings() == ["infrastructure"] * 2
    assert {each.end.message for each in sweep.state.jobs.values()} == {"the Ray cluster is gone"}
    assert [job.job_id for job in sweep.ended] == [jobs[0].job_id]
