"""Sweeps of scripted runs, on any executor."""

from __future__ import annotations

import json
from pathlib import Path

from ascend_gym.search.journal import JOURNAL_NAME
from ascend_gym.sweep.executors import LocalExecutor
from ascend_gym.sweep.jobs import SweepJob
from ascend_gym.sweep.run_folders import RunFolders
from ascend_gym.sweep.sweep_state import DaemonSlots, SweepLoop, SweepState

CHILD = "fake_sweep_child"


def parent_of(pid):
    """Return the id of the process that started another one."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def make_job(seed, **directives):
    settings = {"method": "best-of-n", "seed": seed, "budget": 10, **directives}
    text = json.dumps(settings).encode()
    return SweepJob(f"best-of-n/toy/seed{seed}", "best-of-n", "core/toy", seed, 10, "910B2", text)


def unbroken_journals(root, seeds):
    """Return the journals of runs that nothing befell."""
    executor = LocalExecutor(2)
    try:
        return Swept(root, [make_job(seed) for seed in seeds], executor).run().journals()
    finally:
        executor.close()


class Swept:
    """A sweep of ``jobs`` below ``root``: run it, look at what came of it, run it again."""

    def __init__(self, root, jobs, executor, daemons=None, on_update=None):
        self.folders = RunFolders(root)
        self.state = SweepState.of(jobs, daemons or [DaemonSlots(None)])
        self.updates, self.ended = [], []
        self._on_update = on_update or (lambda update: None)
        for job in jobs:
            self.folders.begin(job)
        self._loop = SweepLoop(self.state, executor, self.folders, [self._note], self.ended.append, (), CHILD)

    def run(self):
        self._loop.run()
        return self

    def _note(self, update):
        self.updates.append(update)
        self._on_update(update)

    def journals(self):
        jobs = [each.job for each in self.state.jobs.values()]
        return [(self.folders.folder(job) / JOURNAL_NAME).read_bytes() for job in jobs]

    def endings(self):
        return [each.end.ending.value for each in self.state.jobs.values()]
