"""Wall time of evaluations, from the timings next to a run's journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_gym.core.append_log import read_log
from ascend_gym.search.journal import TIMINGS_NAME

PHASES = ("build", "run", "verify", "price")


@dataclass(frozen=True)
class Costs:
    """Cost of a set of evaluations.

    Attributes:
        evaluations: number of evaluations, including baselines.
        cached: number of those that were answered from a cache.
        phase_seconds: total seconds by phase of those that were measured.
        total_seconds: their total seconds, without waiting for a worker.
    """

    evaluations: int
    cached: int
    phase_seconds: Mapping[str, float]
    total_seconds: float

    @property
    def seconds_per_evaluation(self) -> float:
        """Mean seconds of a measured evaluation; 0 if there are none."""
        measured = self.evaluations - self.cached
        return self.total_seconds / measured if measured else 0.0

    @property
    def cached_share(self) -> float:
        """Share of evaluations answered from a cache; 0 if there are none."""
        return self.cached / self.evaluations if self.evaluations else 0.0


def read_costs(folders: Iterable[Path]) -> Costs:
    """Add up the evaluations of the runs in ``folders``, without answers that yielded no candidate.

    Raises:
        MisuseError: the timings of a run are damaged.
    """
    recorded = (record for folder in folders for record in _timings(folder))
    timings = [timing for timing in recorded if timing.get("evaluated", True)]
    measured = [timing["seconds"] for timing in timings if not timing["cached"]]
    return Costs(
        evaluations=len(timings),
        cached=len(timings) - len(measured),
        phase_seconds={phase: sum(seconds[phase] for seconds in measured) for phase in PHASES},
        total_seconds=sum(seconds["total"] - seconds["queue"] for seconds in measured),
    )


def _timings(folder: Path) -> list[dict[str, Any]]:
    path = folder / TIMINGS_NAME
    return read_log(path) if path.exists() else []
