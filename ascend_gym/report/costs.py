"""Wall time of evaluations, from the timings next to a run's journal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_gym.core.append_log import read_log
from ascend_gym.report.comparison import Table
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


def costs_table(runs: Iterable[tuple[str, Path]]) -> Table:
    """Return one row for each method: how many evaluations, and where their seconds went.

    Args:
        runs: the method and the folder of each run.
    """
    folders = defaultdict(list)
    for method, folder in runs:
        folders[method].append(folder)
    costs = {method: read_costs(each) for method, each in folders.items()}
    columns = ("method", "evaluations", "known %", "s each", *(f"{phase} %" for phase in PHASES))
    rows = tuple((method, *_cells(each)) for method, each in costs.items())
    return Table("Wall time of evaluations; known ones were measured before", columns, rows)


def _cells(costs: Costs) -> tuple[str, ...]:
    shares = (costs.phase_seconds[phase] / (costs.total_seconds or 1.0) for phase in PHASES)
    return (
        str(costs.evaluations),
        f"{100 * costs.cached_share:.0f}",
        f"{costs.seconds_per_evaluation:.2f}",
        *(f"{100 * share:.0f}" for share in shares),
    )


def _timings(folder: Path) -> list[dict[str, Any]]:
    path = folder / TIMINGS_NAME
    return read_log(path) if path.exists() else []
