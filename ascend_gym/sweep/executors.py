"""Executors of runs: local processes or Ray actors, behind one interface for the driver of a sweep."""

from __future__ import annotations

import queue
import threading
from typing import Protocol

from ascend_gym.sweep.child_run import ChildRun, RunPlace
from ascend_gym.sweep.jobs import RunEnd, RunEnding, RunTask, Update

POLL_S = 5.0


class Executor(Protocol):
    """Executes runs."""

    def capacity(self) -> int:
        """Return the maximum number of simultaneous runs; it changes as hosts join and leave."""

    def start(self, task: RunTask) -> None:
        """Start a run."""

    def updates(self, timeout_s: float) -> list[Update]:
        """Return updates of runs, waiting up to ``timeout_s`` for the first. Each run ends once."""

    def stop_all(self) -> None:
        """Ask all runs to stop; ``updates`` returns their ends."""

    def close(self) -> None:
        """Kill all runs that are still active."""


class LocalExecutor:
    """Executes runs as processes of this host.

    Args:
        runs: maximum number of simultaneous runs.
    """

    def __init__(self, runs: int) -> None:
        self._runs = runs
        self._children: dict[str, ChildRun] = {}
        self._free: list[RunPlace] = []
        self._queue: queue.SimpleQueue[Update] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def capacity(self) -> int:
        """Return the maximum number of simultaneous runs."""
        return self._runs

    def start(self, task: RunTask) -> None:
        """Start a run."""
        place = self._free.pop() if self._free else RunPlace()
        try:
            child = place.begin(task)
        except OSError as error:
            self._free.append(place)
            self._queue.put(lost(task, f"it could not be begun: {error}"))
            return
        self._children[task.job.job_id] = child
        thread = threading.Thread(target=self._follow, args=[task.job.job_id, child, place])
        self._threads.append(thread)
        thread.start()

    def updates(self, timeout_s: float) -> list[Update]:
        """Return updates of runs; see ``Executor.updates``."""
        try:
            taken = [self._queue.get(timeout=timeout_s)]
        except queue.Empty:
            return []
        while not self._queue.empty():
            taken.append(self._queue.get())
        return taken

    def stop_all(self) -> None:
        """Ask all runs to stop."""
        for child in list(self._children.values()):
            child.stop()

    def close(self) -> None:
        """Kill all runs that are still active."""
        self.stop_all()
        for thread in self._threads:
            thread.join()
        for place in self._free:
            place.close()
        self._free.clear()

    def _follow(self, job_id: str, child: ChildRun, place: RunPlace) -> None:
        update = child.updates(POLL_S)
        while update.end is None:
            if update.steps or update.parts:
                self._queue.put(update)
            update = child.updates(POLL_S)
        self._children.pop(job_id, None)
        self._free.append(place)
        self._queue.put(update)


def lost(task: RunTask, message: str) -> Update:
    """Return the update of an attempt whose process or host was lost."""
    return Update(task.job.job_id, task.attempt, "", end=RunEnd(RunEnding.LOST, message))
