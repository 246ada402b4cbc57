"""What travels between the driver of a sweep and the hosts on which its runs are made.

All of it pickles, and none of it is an exception: those of other packages may not survive the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

CHILD_MODULE = "ascend_gym.cli.sweep_child"


@dataclass(frozen=True)
class Job:
    """One run that is to be made.

    Attributes:
        job_id: its folder below that of the sweep.
        variant: the method with what is special about it.
        operator: id of the operator.
        seed: seed of the run.
        budget: evaluations that it may spend.
        chip: chip whose cycles are counted.
        settings: text of its ``run.json``.
    """

    job_id: str
    variant: str
    operator: str
    seed: int
    budget: int
    chip: str
    settings: bytes


@dataclass(frozen=True)
class RunTask:
    """A run as a host is told to make it, or to go on with it.

    Attributes:
        job: the run.
        attempt: which attempt at it this is, from 1.
        daemon: address of the daemon; ``None`` for the host's own, ``$ASCEND_GYM_DAEMON`` or a private one.
        files: what is known of the run: journal, timings and answers by name.
        arguments: further arguments of the child: evaluations in flight, how models are reached.
        module: the module whose ``main`` makes the run; see ``ForkServer``.
    """

    job: Job
    attempt: int
    daemon: str | None
    files: Mapping[str, bytes]
    arguments: tuple[str, ...] = ()
    module: str = CHILD_MODULE


@dataclass(frozen=True)
class FilePart:
    """What a file of a run holds from ``offset_bytes`` on."""

    name: str
    offset_bytes: int
    data: bytes


@dataclass(frozen=True)
class RunStep:
    """One observed evaluation; latencies are in microseconds."""

    index: int
    status: str
    spent_evaluations: int
    baseline_latency_us: float | None
    best_latency_us: float | None

    @property
    def speedup(self) -> float:
        """Speedup of the best so far; 1 where nothing was measured."""
        if self.baseline_latency_us is None or self.best_latency_us is None:
            return 1.0
        return self.baseline_latency_us / self.best_latency_us


class Ending(str, Enum):
    """How an attempt at a run ended."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    INFRASTRUCTURE = "infrastructure"  # its daemon or model could not be reached
    LOST = "lost"  # its process or host is gone
    REFUSED = "refused"  # it cannot be made: another attempt would not help


@dataclass(frozen=True)
class RunEnd:
    """The end of an attempt, with what a person should know about it."""

    ending: Ending
    message: str = ""


@dataclass(frozen=True)
class Update:
    """What an attempt tells the driver.

    Attributes:
        job_id: the run.
        attempt: the attempt; updates of an earlier one are dropped.
        host: where it is made.
        parts: what was added to its files.
        steps: what was evaluated.
        end: how it ended; ``None`` while it goes on.
    """

    job_id: str
    attempt: int
    host: str
    parts: tuple[FilePart, ...] = ()
    steps: tuple[RunStep, ...] = ()
    end: RunEnd | None = field(default=None)
