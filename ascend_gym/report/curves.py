"""How the best latency of a run fell with the evaluations that it was charged, read from its journal."""

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

    For a method whose samples do not depend on each other or on the budget, as those of Best-of-N, the
    point at n is what a run with a budget of n finds.

    Attributes:
        best_us: ``best_us[n]`` is the lowest latency after n charged evaluations; the baseline's at 0.
            Empty if the baseline was not measured.
        stop_reason: why the run ended; ``None`` if it can still go on.
    """

    best_us: tuple[float, ...]
    stop_reason: str | None

    @property
    def evaluations(self) -> int:
        """Evaluations that were charged."""
        return max(len(self.best_us) - 1, 0)

    def speedup_at(self, budget: int) -> float:
        """Return the speedup over the baseline after at most ``budget`` charged evaluations.

        A run without a measured baseline has found nothing: its speedup is 1.

        Raises:
            MisuseError: the budget is negative, or larger than what a run that can still go on has spent.
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
        MisuseError: the journal was changed or damaged.
    """
    return curve_of(read_journal(folder))


def curve_of(records: Sequence[Mapping[str, Any]]) -> Curve:
    """Return the curve that the records of a journal describe."""
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
    """Add what one result changes: the baseline starts the curve, a charged evaluation goes one further."""
    if index == 0:
        best_us.extend([] if latency_us is None else [latency_us])
    elif charged and best_us:
        best_us.append(best_us[-1] if latency_us is None else min(best_us[-1], latency_us))
