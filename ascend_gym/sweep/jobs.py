"""Messages between the driver of a sweep and the hosts that execute its runs.

All of them can be pickled, and none contains an exception: exceptions of other packages may not unpickle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ascend_gym.core.best import speedup

CHILD_MODULE = "ascend_gym.cli.sweep_child"


@dataclass(frozen=True)
class SweepJob:
    """One run of a sweep.

    Attributes:
        job_id: its folder relative to that of the sweep.
        variant: method with its special settings.
        operator: operator id.
        seed: seed of the run.
        budget: number of evaluations.
        chip: simulated or measured chip.
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
    """An attempt at a run, to be executed or resumed on a host.

    Attributes:
        job: run.
        attempt: number of the attempt, from 1.
        daemon: address of the daemon; ``None`` for the host's own, ``$ASCEND_GYM_DAEMON`` or a private one.
        files: known state of the run: journal, timings and answers by name.
        arguments: further arguments of the child: evaluations in flight, access to models.
        module: module whose ``main`` executes the run; see ``ForkServer``.
    """

    job: SweepJob
    attempt: int
    daemon: str | None
    files: Mapping[str, bytes]
    arguments: tuple[str, ...] = ()
    module: str = CHILD_MODULE


@dataclass(frozen=True)
class FilePart:
    """Contents of a run's file from ``offset_bytes`` on."""

    name: str
    offset_bytes: int
    data: bytes


@dataclass(frozen=True)
class RunStep:
    """One evaluation of a run; latencies are in microseconds."""

    index: int
    status: str
    spent_evaluations: int
    baseline_latency_us: float | None
    best_latency_us: float | None

    @property
    def speedup(self) -> float:
        """Speedup of the best candidate so far; 1 if nothing was measured."""
        return speedup(self.baseline_latency_us, self.best_latency_us) or 1.0


class RunEnding(str, Enum):
    """Outcome of an attempt at a run."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    INFRASTRUCTURE = "infrastructure"  # its daemon or model could not be reached
    LOST = "lost"  # its process or host is gone
    MODEL_REFUSED = (
        "model_refused"  # its model refuses for good: no key, no such model, nothing left to spend
    )
    REFUSED = "refused"  # it cannot be made: another attempt would not help


@dataclass(frozen=True)
class RunEnd:
    """End of an attempt, with a message for the user."""

    ending: RunEnding
    message: str = ""


@dataclass(frozen=True)
class Update:
    """News of an attempt for the driver.

    Attributes:
        job_id: run.
        attempt: number of the attempt; updates of earlier attempts are dropped.
        host: host that executes it.
        parts: additions to its files.
        steps: new evaluations.
        end: its end; ``None`` while it continues.
    """

    job_id: str
    attempt: int
    host: str
    parts: tuple[FilePart, ...] = ()
    steps: tuple[RunStep, ...] = ()
    end: RunEnd | None = field(default=None)
