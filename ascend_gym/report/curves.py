"""Curves of the best latency over charged evaluations, from the journal of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.status import Status, rule_of
from ascend_gym.search.driver import Duplicates
from ascend_gym.search.journal import read_journal


@dataclass(frozen=True)
class Curve:
    """The best latency of one run after each charged evaluation.

    For a method whose samples depend neither on each other nor on the budget, such as Best-of-N, the
    point at n is the result of a run with budget n.

    Attributes:
        best_us: ``best_us[n]`` is the lowest latency after n charged evaluations; the baseline's at 0.
            Empty if the baseline was not measured.
        stop_reason: why the run ended; ``None`` if it can still be resumed.
    """

    best_us: tuple[float, ...]
    stop_reason: str | None

    @property
    def evaluations(self) -> int:
        """Number of charged evaluations."""
        return max(len(self.best_us) - 1, 0)

    def speedup_at(self, budget: int) -> float:
        """Return the speedup over the baseline after at most ``budget`` charged evaluations.

        The speedup is 1 for a run whose baseline was not measured.

        Raises:
            MisuseError: the budget is negative, or larger than the spending of a run that can still be
                resumed.
        """
        if budget < 0:
            raise MisuseError(f"expected a budget of 0 or more evaluations, got {budget}")
        if self.stop_reason is None and budget > self.evaluations:
            raise MisuseError(
                f"the run is not finished: {self.evaluations} of {budget} evaluations are known"
            )
        if not self.best_us:
            return 1.0
        return self.best_us[0] / self.best_us[min(budget, self.evaluations)]


def read_curve(folder: Path) -> Curve:
    """Read the curve of the run in ``folder``.

    Raises:
        MisuseError: the journal was modified or damaged.
    """
    return curve_of(read_journal(folder))


def curve_of(records: Sequence[Mapping[str, Any]]) -> Curve:
    """Return the curve of a journal's records."""
    free_duplicates = False
    duplicate = False
    best_us: list[float] = []
    stop_reason = None
    for record in records:
        if record["kind"] == "header":
            free_duplicates = record["settings"]["duplicates"] == Duplicates.FREE.value
        elif record["kind"] == "proposal":
            duplicate = "duplicate_of" in record
        elif record["kind"] == "result":
            free = duplicate and free_duplicates
            charged = rule_of(Status(record["result"]["status"])).charged and not free
            _extend(best_us, record["index"], record["latency_us"], charged)
        elif record["kind"] == "end":
            stop_reason = record["stop_reason"]
    return Curve(tuple(best_us), stop_reason)


def _extend(best_us: list[float], index: int, latency_us: float | None, charged: bool) -> None:
    """Add one result: the baseline starts the curve, a charged evaluation extends it.

    Args:
        best_us: curve so far, extended in place.
        index: number of the proposal; 0 is the baseline.
        latency_us: latency, or ``None`` if it failed.
        charged: whether the evaluation was charged.
    """
    if index == 0:
        best_us.extend([] if latency_us is None else [latency_us])
    elif charged and best_us:
        best_us.append(best_us[-1] if latency_us is None else min(best_us[-1], latency_us))
