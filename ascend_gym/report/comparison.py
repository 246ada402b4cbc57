"""Search methods side by side: metrics at several budgets, as data and as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ascend_gym.core.errors import MisuseError
from ascend_gym.report.curves import Curve
from ascend_gym.report.metrics import (
    FAST_P,
    Estimate,
    fast_p,
    geometric_mean,
    paired_p_value,
    relative_speedup,
)


@dataclass(frozen=True)
class Run:
    """One run of one method.

    Attributes:
        method: name of the method, or of a variant of it.
        operator: id of the operator.
        seed: seed of the run.
        curve: what it found with how many evaluations; ``None`` if it is not finished.
    """

    method: str
    operator: str
    seed: int
    curve: Curve | None


@dataclass(frozen=True)
class Row:
    """One method at one budget, over all operators and seeds.

    Attributes:
        method: name of the method.
        geometric_mean: of the speedups.
        relative: geometric mean of the speedups over those of the comparison's first method.
        p_value: of that difference (``paired_p_value``).
        fast: share of operators faster than p, for each p of ``FAST_P``.
    """

    method: str
    geometric_mean: Estimate
    relative: Estimate
    p_value: float
    fast: tuple[Estimate, ...]


@dataclass(frozen=True)
class Table:
    """Texts in rows and columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def markdown(self) -> str:
        """The table in Markdown; numbers to the right."""
        ruler = ["---", *["---:"] * (len(self.columns) - 1)]
        lines = ["| " + " | ".join(cells) + " |" for cells in (self.columns, ruler, *self.rows)]
        return "\n".join([f"### {self.title}", "", *lines, ""])


class Comparison:
    """Methods compared on the operators for which every run of every method is finished.

    Attributes:
        methods: the methods, in the order in which they first appear.
        operators: the operators compared, in that order too.
        left_out: the operators that are not, because a run is missing or not finished.
        seeds: the seeds, in ascending order.
    """

    def __init__(self, runs: Iterable[Run]) -> None:
        """Compare ``runs``.

        Raises:
            MisuseError: two are of the same method, operator and seed.
        """
        self._curves: dict[tuple[str, str, int], Curve | None] = {}
        for run in runs:
            key = (run.method, run.operator, run.seed)
            if key in self._curves:
                raise MisuseError(f"two runs of {run.method} on {run.operator} with seed {run.seed}")
            self._curves[key] = run.curve
        self.methods = list(dict.fromkeys(method for method, _, _ in self._curves))
        self.seeds = sorted({seed for _, _, seed in self._curves})
        seen = dict.fromkeys(operator for _, operator, _ in self._curves)
        self.operators = [operator for operator in seen if self._is_complete(operator)]
        self.left_out = [operator for operator in seen if operator not in self.operators]

    def speedups(self, method: str, budget: int) -> list[list[float]]:
        """Return the speedups of a method within a budget, of shape (operators, seeds)."""
        return [
            [self._finished(method, operator, seed).speedup_at(budget) for seed in self.seeds]
            for operator in self.operators
        ]

    def rows(self, budget: int) -> list[Row]:
        """Return the metrics of each method within a budget; none if no operator is complete."""
        if not self.operators:
            return []
        first = self.speedups(self.methods[0], budget)
        return [self._row(method, self.speedups(method, budget), first) for method in self.methods]

    def as_json(self, budgets: Sequence[int]) -> dict[str, Any]:
        """Return all metrics and all speedups as JSON values."""
        return {
            "methods": self.methods,
            "operators": self.operators,
            "left_out": self.left_out,
            "seeds": self.seeds,
            "fast_p": list(FAST_P),
            "budgets": {str(budget): [asdict(row) for row in self.rows(budget)] for budget in budgets},
            "speedups": {
                str(budget): {method: self.speedups(method, budget) for method in self.methods}
                for budget in budgets
            },
        }

    def tables(self, budgets: Sequence[int]) -> list[Table]:
        """Return a table of metrics for each budget, and one of the operators at the last."""
        return [*(self._metrics_table(budget) for budget in budgets), self._operators_table(budgets[-1])]

    def _is_complete(self, operator: str) -> bool:
        return all(
            self._curves.get((method, operator, seed)) is not None
            for method in self.methods
            for seed in self.seeds
        )

    def _finished(self, method: str, operator: str, seed: int) -> Curve:
        curve = self._curves[method, operator, seed]
        assert curve is not None, "only operators are asked for whose runs are all finished"
        return curve

    @staticmethod
    def _row(method: str, speedups: list[list[float]], first: list[list[float]]) -> Row:
        fast = tuple(fast_p(speedups, p) for p in FAST_P)
        relative, p_value = relative_speedup(speedups, first), paired_p_value(speedups, first)
        return Row(method, geometric_mean(speedups), relative, p_value, fast)

    def _metrics_table(self, budget: int) -> Table:
        columns = (
            "method",
            "GM",
            f"GM over {self.methods[0]}",
            "p",
            *(f"fast_{p:.1f} %" for p in FAST_P),
        )
        rows = tuple(
            (
                row.method,
                row.geometric_mean.text(3),
                row.relative.text(3),
                f"{row.p_value:.3g}",
                *(share.text(0, scale=100.0) for share in row.fast),
            )
            for row in self.rows(budget)
        )
        size = f"{len(self.operators)} operators, {len(self.seeds)} seeds"
        return Table(f"Budget {budget}: {size}, 95 % intervals", columns, rows)

    def _operators_table(self, budget: int) -> Table:
        by_method = [self.speedups(method, budget) for method in self.methods]
        rows = tuple(
            (operator, *(f"{geometric_mean([speedups[at]]).value:.3f}" for speedups in by_method))
            for at, operator in enumerate(self.operators)
        )
        return Table(f"Budget {budget}: speedup by operator", ("operator", *self.methods), rows)
