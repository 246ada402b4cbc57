"""How busy the processors of this host are, and work that waits for one of them."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Generic, TypeVar, cast

T = TypeVar("T")

_LOAD = Path("/proc/loadavg")
# What has just ended still counts for some hundred microseconds, with its supervisor and who reaps that: one
# look is not enough, and the next ones follow soon.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.0005, 0.008
_LOOKING_S = 1.0
"""What begins late beside something that fails keeps its caller waiting: later, nothing begins by itself."""


def none_waits() -> bool:
    """Whether everything that can run now has a processor."""
    return _running() <= len(os.sched_getaffinity(0))


class WhenIdle(Generic[T]):
    """Work that begins in a thread as soon as a processor has nothing to do, or else when it is wanted.

    The thread looks for a second; nobody has to say that the work is not wanted.

    Args:
        pool: whose next free thread looks for a processor, and then works.
        work: returns the result.
    """

    def __init__(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> None:
        self._pool, self._work = pool, work
        self._lock, self._wanted = threading.Lock(), threading.Event()
        self._gave_up = self._dropped = False
        self._result: Future[T | None] = pool.submit(self._when_idle)

    def begin(self) -> None:
        """Have it begin now, if it has not yet, however busy the processors are; not after ``drop``."""
        with self._lock:
            self._wanted.set()
            if self._gave_up:
                self._gave_up, self._result = False, self._pool.submit(self._work)

    def result(self) -> T:
        """Have it begin now, if it has not yet, and return its result; not after ``drop``."""
        self.begin()
        return cast(T, self._result.result())

    def drop(self) -> None:
        """Have it never begin; if it has, wait for its end, whatever that is."""
        with self._lock:
            self._dropped = True
            self._wanted.set()
        if not self._result.cancel():
            wait([self._result])

    def _when_idle(self) -> T | None:
        pause_s, until_s = _FIRST_PAUSE_S, time.monotonic() + _LOOKING_S
        while not self._wanted.is_set() and not none_waits():
            if time.monotonic() >= until_s and self._gives_up():
                return None
            self._wanted.wait(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        return None if self._dropped else self._work()

    def _gives_up(self) -> bool:
        """Leave it to whoever wants the result, if nobody does yet."""
        with self._lock:
            self._gave_up = not self._wanted.is_set()
            return self._gave_up


def _running() -> float:
    """Return how many threads of this host can run now, this one included; infinite if that is not known."""
    try:
        return int(_LOAD.read_text("ascii").split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return math.inf
