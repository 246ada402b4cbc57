"""The loop of a sweep: starts runs, records what hosts report, and stops cleanly."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ascend_gym.search.interrupts import interrupts_held_back
from ascend_gym.sweep.executors import Executor
from ascend_gym.sweep.jobs import CHILD_MODULE, Ending, Job, RunEnd, RunTask, Update
from ascend_gym.sweep.run_folders import RunFolders
from ascend_gym.sweep.sweep_state import Start, SweepState

_TICK_S = 0.5
_STOP_TIMEOUT_S = 30.0

INTERRUPTED = RunEnd(Ending.INTERRUPTED, "the sweep was interrupted")


@dataclass
class SweepLoop:
    """Executes the runs of a sweep.

    Attributes:
        state: runs and daemons.
        executor: executes runs; its creator closes it.
        folders: files of the runs.
        listeners: functions called with every update of a run, after it was recorded.
        on_end: called with a run whose attempt has ended, after further runs were started.
        arguments: further arguments of the processes that execute runs.
        module: module that these processes execute.
    """

    state: SweepState
    executor: Executor
    folders: RunFolders
    listeners: Sequence[Callable[[Update], None]]
    on_end: Callable[[Job], object]
    arguments: tuple[str, ...] = ()
    module: str = CHILD_MODULE
    _ended: deque[Job] = field(init=False, default_factory=deque)

    def run(self) -> None:
        """Execute all runs; SIGINT or SIGTERM stops those that are active, and keeps their results."""
        try:
            while not self.state.done:
                for start in self.state.starts(time.monotonic(), self.executor.capacity()):
                    self.executor.start(self._task(start))
                self._take(0.0 if self._ended else _TICK_S)
                self._settle_one()
        except KeyboardInterrupt:
            self._stop()
        finally:
            while self._ended:
                self._settle_one()

    def _task(self, start: Start) -> RunTask:
        files = self.folders.known(start.job)
        return RunTask(start.job, start.attempt, start.daemon, files, self.arguments, self.module)

    def _take(self, timeout_s: float) -> None:
        for update in self.executor.updates(timeout_s):
            if not self.state.is_current(update):
                continue
            job = self.state.jobs[update.job_id].job
            with interrupts_held_back():
                self.folders.add(job, update.parts)
                self.state.observe(update, time.monotonic())
                for listener in self.listeners:
                    listener(update)
                if update.end is not None:
                    self._ended.append(job)

    def _settle_one(self) -> None:
        """Report one ended run; only one at a time, because storing it takes as long as many updates."""
        if self._ended:
            with interrupts_held_back():
                self.on_end(self._ended.popleft())

    def _stop(self) -> None:
        self.executor.stop_all()
        deadline_s = time.monotonic() + _STOP_TIMEOUT_S
        while self.state.running and time.monotonic() < deadline_s:
            self._take(_TICK_S)
        self.state.give_up(INTERRUPTED)
