"""The scheduling of a sweep's runs, which are pure decisions, and the loop that acts on them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.interrupts import interrupts_held_back, raise_if_interrupted
from ascend_gym.sweep.executors import Executor
from ascend_gym.sweep.jobs import CHILD_MODULE, RunEnd, RunEnding, RunTask, SweepJob, Update
from ascend_gym.sweep.run_folders import RunFolders

ATTEMPTS_WITHOUT_PROGRESS = 5
_FIRST_PAUSE_S = 2.0
_LONGEST_PAUSE_S = 60.0
_LOOKED_AT = 1000  # runs that wait, at a time: daemons of several chips may pass over some

_TICK_S = 0.5
_STOP_TIMEOUT_S = 30.0
INTERRUPTED = RunEnd(RunEnding.INTERRUPTED, "the sweep was interrupted")


@dataclass
class DaemonSlots:
    """A daemon, with the runs that the sweep has on it.

    Attributes:
        address: its address; ``None`` stands for the executing host's own daemon.
        chip: chip that it measures or simulates; ``None`` for any.
        runs: maximum number of simultaneous runs; ``None`` for the capacity of the hosts.
        running: current number of runs.
        failures: number of consecutive attempts that found it broken.
        paused_until_s: time before which no run is started on it.
    """

    address: str | None
    chip: str | None = None
    runs: int | None = None
    running: int = 0
    failures: int = 0
    paused_until_s: float = 0.0

    def takes(self, job: SweepJob, now_s: float) -> bool:
        """Return whether a run can be started on it."""
        return self.has_room(now_s) and self.chip in (None, job.chip)

    def has_room(self, now_s: float) -> bool:
        """Return whether any run can be started on it."""
        return (self.runs is None or self.running < self.runs) and now_s >= self.paused_until_s

    def has_failed(self, now_s: float) -> None:
        """Pause the daemon, longer after each consecutive failure."""
        self.failures += 1
        self.paused_until_s = now_s + min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (self.failures - 1))


@dataclass
class JobState:
    """Progress of a run.

    Attributes:
        job: run.
        attempt: number of the current or last attempt; 0 before the first.
        fruitless: number of consecutive attempts without a new evaluation.
        index: number of the last evaluation so far; -1 before the baseline.
        spent_evaluations: number of charged evaluations.
        speedup: speedup of the best candidate so far.
        host: host of the current or last attempt.
        daemon: daemon that it runs on; ``None`` while it does not run.
        end: its final outcome; ``None`` while it can continue.
    """

    job: SweepJob
    attempt: int = 0
    fruitless: int = 0
    index: int = -1
    spent_evaluations: int = 0
    speedup: float = 1.0
    host: str = ""
    daemon: DaemonSlots | None = None
    end: RunEnd | None = None


@dataclass
class SweepState:
    """Waiting, running and ended runs of a sweep.

    A run that lost its process, host or daemon waits again; after ``ATTEMPTS_WITHOUT_PROGRESS`` consecutive
    attempts without progress it is given up for this session. Where a model refuses for good, no further run
    is started. Once every daemon has failed as often in a row,
    all waiting runs are given up.

    Attributes:
        jobs: runs by id, in the order in which they are started.
        daemons: daemons on which runs can execute.
    """

    jobs: Mapping[str, JobState]
    daemons: list[DaemonSlots]
    _waiting: dict[str, JobState] = field(init=False)
    _running: dict[str, JobState] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Queue all runs."""
        self._waiting = dict(self.jobs)

    @classmethod
    def of(cls, jobs: Iterable[SweepJob], daemons: list[DaemonSlots]) -> SweepState:
        """Return the initial state."""
        return cls({job.job_id: JobState(job) for job in jobs}, daemons)

    @property
    def done(self) -> bool:
        """Whether every run has ended."""
        return not self._running and not self._waiting

    @property
    def ended(self) -> int:
        """Number of runs that have ended."""
        return len(self.jobs) - len(self._running) - len(self._waiting)

    @property
    def running(self) -> list[JobState]:
        """Active runs, in the order in which they were started."""
        return list(self._running.values())

    def has_ended_before(self, job_id: str, end: RunEnd) -> None:
        """Mark a run as completed by an earlier session."""
        self._waiting.pop(job_id).end = end

    def starts(self, now_s: float, capacity: int) -> list[JobState]:
        """Return the runs to start now, each on the least busy daemon, up to ``capacity`` active runs."""
        started: list[JobState] = []
        if not any(daemon.has_room(now_s) for daemon in self.daemons):
            return started
        for state in list(islice(self._waiting.values(), _LOOKED_AT)):
            if len(self._running) >= capacity:
                break
            daemon = self._free_daemon(state.job, now_s)
            if daemon is not None:
                self._start(state, daemon)
                started.append(state)
        return started

    def is_current(self, update: Update) -> bool:
        """Return whether an update belongs to the current attempt."""
        return update.job_id in self._running and self.jobs[update.job_id].attempt == update.attempt

    def observe(self, update: Update, now_s: float) -> None:
        """Process an update of the current attempt."""
        state = self.jobs[update.job_id]
        state.host = update.host
        for step in update.steps:
            if step.index > state.index:
                state.index, state.spent_evaluations = step.index, step.spent_evaluations
                state.speedup, state.fruitless = step.speedup, 0
                assert state.daemon is not None, "a run under way has a daemon"
                state.daemon.failures = 0
        if update.end is not None:
            self._settle(state, update.end, now_s)

    def give_up(self, reason: RunEnd) -> None:
        """End all runs that have not ended."""
        for state in (*self._waiting.values(), *self._running.values()):
            state.end, state.daemon = reason, None
        self._waiting.clear()
        self._running.clear()

    def _give_up_waiting(self, reason: RunEnd) -> None:
        """End all runs that have not begun: their model would refuse them, too."""
        for state in self._waiting.values():
            state.end = reason
        self._waiting.clear()

    def _free_daemon(self, job: SweepJob, now_s: float) -> DaemonSlots | None:
        free = [daemon for daemon in self.daemons if daemon.takes(job, now_s)]
        return min(free, key=lambda daemon: daemon.running / (daemon.runs or 1)) if free else None

    def _start(self, state: JobState, daemon: DaemonSlots) -> None:
        state.attempt += 1
        state.fruitless += 1
        state.daemon = daemon
        daemon.running += 1
        self._running[state.job.job_id] = self._waiting.pop(state.job.job_id)

    def _settle(self, state: JobState, end: RunEnd, now_s: float) -> None:
        daemon, state.daemon = state.daemon, None
        assert daemon is not None, "a run under way has a daemon"
        daemon.running -= 1
        del self._running[state.job.job_id]
        if end.ending is RunEnding.INFRASTRUCTURE:
            daemon.has_failed(now_s)
        final = end.ending not in (RunEnding.INFRASTRUCTURE, RunEnding.LOST)
        if final or state.fruitless >= ATTEMPTS_WITHOUT_PROGRESS:
            state.end = end
        else:
            self._waiting[state.job.job_id] = state
        if end.ending is RunEnding.MODEL_REFUSED:
            self._give_up_waiting(end)
        if all(each.failures >= ATTEMPTS_WITHOUT_PROGRESS for each in self.daemons) and not self._running:
            self.give_up(end)


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
    on_end: Callable[[SweepJob], object]
    arguments: tuple[str, ...] = ()
    module: str = CHILD_MODULE
    _ended: deque[SweepJob] = field(init=False, default_factory=deque)

    def run(self) -> None:
        """Execute all runs; SIGINT or SIGTERM stops those that are active, and keeps their results.

        Where nothing can go on, because the cluster is gone or the disk is full, the runs that have not ended
        end with the reason.
        """
        try:
            while not self.state.done:
                raise_if_interrupted()
                for each in self.state.starts(time.monotonic(), self.executor.capacity()):
                    self.executor.start(self._task(each))
                self._take(0.0 if self._ended else _TICK_S)
                self._settle_one()
        except KeyboardInterrupt:
            self._stop()
        except InfrastructureError as error:
            self._ended.extend(each.job for each in self.state.running)
            self.state.give_up(RunEnd(RunEnding.INFRASTRUCTURE, str(error)))
        finally:
            while self._ended:
                self._settle_one()

    def _task(self, state: JobState) -> RunTask:
        assert state.daemon is not None, "a run under way has a daemon"
        files, address = self.folders.known(state.job), state.daemon.address
        return RunTask(state.job, state.attempt, address, files, self.arguments, self.module)

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
        with suppress(InfrastructureError):  # nobody is left to stop
            self.executor.stop_all()
            deadline_s = time.monotonic() + _STOP_TIMEOUT_S
            while self.state.running and time.monotonic() < deadline_s:
                self._take(_TICK_S)
        self.state.give_up(INTERRUPTED)
