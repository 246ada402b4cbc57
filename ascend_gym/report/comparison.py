"""Comparison of search methods: metrics at several budgets, as data and as tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, NamedTuple

from ascend_gym.core.errors import MisuseError
from ascend_gym.report.metrics import (
    FAST_P,
    NO_INTERVAL_NOTE,
    P_NOTE,
    Estimate,
    PairedTest,
    fast_p,
    geometric_mean,
    holm,
    paired_test,
    relative_speedup,
)

NONE = "-"
P_COLUMN = "p (Holm)"
_SPLIT = (
    "Runs of one method with different budgets, models, chips, settings or simulators count as runs of "
    "different methods."
)
_FIRST = "best-of-n"

Cell = tuple[str, int]  # operator, seed


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


@dataclass(frozen=True)
class Run:
    """One run of one method.

    Attributes:
        method: name of the method, or of a variant of it.
        operator: operator id.
        seed: seed of the run.
        curve: best latency by number of evaluations; ``None`` if the run is not finished.
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
        geometric_mean: geometric mean of the speedups.
        relative: geometric mean of the speedups relative to those of the reference, the first method.
        test: whether that differs from 1 (``paired_test``), corrected over the methods; ``None`` for the
            reference itself.
        fast: share of operators with a speedup above p, for each p of ``FAST_P``.
    """

    method: str
    geometric_mean: Estimate
    relative: Estimate
    test: PairedTest | None
    fast: tuple[Estimate, ...]


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def markdown(self) -> str:
        """The table in Markdown, with numbers aligned right."""
        ruler = ["---", *["---:"] * (len(self.columns) - 1)]
        lines = ["| " + " | ".join(cells) + " |" for cells in (self.columns, ruler, *self.rows)]
        return "\n".join([f"### {self.title}", "", *lines, ""])


def figure_notes(tables: Iterable[Table]) -> list[str]:
    """Return what marks mean, of those that stand in ``tables``."""
    texts = [
        text for table in tables for text in (table.title, *(cell for row in table.rows for cell in row))
    ]
    marks = {"(least ": P_NOTE, "[-]": NO_INTERVAL_NOTE}
    return [said for mark, said in marks.items() if any(mark in text for text in texts)]


def in_order(methods: Iterable[str]) -> list[str]:
    """Return methods in display order: Best-of-N, the reference, first; variants last."""
    return sorted(set(methods), key=lambda name: (":" in name, not name.startswith(_FIRST), name))


class Comparison:
    """Methods compared on operators and seeds for which all of them have finished runs.

    Attributes:
        methods: compared methods, the reference first.
        others: methods with too few runs in common with these, with the number of their finished runs.
        operators: compared operators, in order of first appearance.
        left_out: operators that are not compared, because a run of a compared method is missing or not
            finished; ``notes`` tells which.
        seeds: compared seeds, in ascending order.
    """

    def __init__(self, runs: Iterable[Run], reference: str | None = None) -> None:
        """Compare ``runs``.

        Args:
            runs: runs of all methods.
            reference: method that the others are compared with; by default the first of those compared,
                in the order of ``in_order``.

        Raises:
            MisuseError: two runs have the same method, operator and seed, or the reference has none.
        """
        self._curves: dict[tuple[str, str, int], Curve | None] = {}
        for run in runs:
            key = (run.method, run.operator, run.seed)
            if key in self._curves:
                raise MisuseError(f"two runs of {run.method} on {run.operator} with seed {run.seed}")
            self._curves[key] = run.curve
        names = in_order(method for method, _, _ in self._curves)
        if reference is not None and reference not in names:
            raise MisuseError(
                f"no run is of the reference {reference!r}; methods with runs: {', '.join(names)}"
            )
        self._reference = reference
        self._seen = list(dict.fromkeys(operator for _, operator, _ in self._curves))
        finished: dict[str, set[tuple[str, int]]] = {name: set() for name in names}
        for (method, operator, seed), curve in self._curves.items():
            finished[method] |= {(operator, seed)} if curve is not None else set()
        self._take(largest_grid(finished, self._seen, reference))
        self.others = {name: len(finished[name]) for name in names if name not in self.methods}

    def _take(self, grid: Grid) -> None:
        self.methods = sorted(grid.methods, key=lambda name: name != self._reference)
        self.operators = list(grid.operators)
        self.left_out = [operator for operator in self._seen if operator not in grid.operators]
        self.seeds = list(grid.seeds)

    def restricted(self, operators: Iterable[str]) -> Comparison:
        """Return the same comparison on the subset ``operators``."""
        wanted = set(operators)
        part = copy(self)
        part._seen = [operator for operator in self._seen if operator in wanted]
        common = tuple(operator for operator in self.operators if operator in wanted)
        part._take(Grid(tuple(self.methods), common, tuple(self.seeds)))
        return part

    @property
    def deterministic(self) -> list[str]:
        """Methods whose runs are the same for every seed, if there are several seeds."""
        if len(self.seeds) < 2 or not self.operators:
            return []
        return [
            name for name in self.methods if all(self._is_seedless(name, each) for each in self.operators)
        ]

    def notes(self) -> list[str]:
        """Return sentences about what is not compared and how to read the tables."""
        said = []
        if self.others:
            counts = ", ".join(f"{name} ({count} finished)" for name, count in self.others.items())
            said.append(f"Not compared, for too few finished runs in common with the others: {counts}.")
            said += [_SPLIT] if self._is_split else []
        reasons: dict[str, list[str]] = {}
        for operator in self.left_out:
            reasons.setdefault(self._why_left_out(operator), []).append(operator)
        said += [f"Left out, because {why}: {', '.join(names)}." for why, names in reasons.items()]
        gone = sorted({seed for _, _, seed in self._curves} - set(self.seeds))
        if gone and self.operators:
            said.append(f"Seeds left out likewise: {', '.join(map(str, gone))}.")
        if self.deterministic:
            names = ", ".join(self.deterministic)
            said.append(f"Deterministic, every seed gave the same run, so seeds add nothing: {names}.")
        return said

    def _why_left_out(self, operator: str) -> str:
        """Return what an operator lacks; budgets or settings that differ are part of names."""
        holders = in_order(method for method, each, _ in self._curves if each == operator)
        if not set(holders) & set(self.methods):
            return f"only methods that are not compared have runs of it ({', '.join(holders)})"
        seeds = self.seeds or sorted({seed for _, each, seed in self._curves if each == operator})
        lacking: dict[str, dict[str, None]] = {}  # methods in order, by fault
        for method, seed in product(self.methods, seeds):
            key = (method, operator, seed)
            if self._curves.get(key) is None:
                fault = "not finished" if key in self._curves else "missing"
                lacking.setdefault(fault, {})[method] = None
        return " and ".join(f"runs of {', '.join(names)} are {fault}" for fault, names in lacking.items())

    def speedups(self, method: str, budget: int) -> list[list[float]]:
        """Return the speedups of a method within a budget, of shape (operators, seeds)."""
        return [
            [self._finished(method, operator, seed).speedup_at(budget) for seed in self.seeds]
            for operator in self.operators
        ]

    def rows(self, budget: int) -> list[Row]:
        """Return the metrics of each method within a budget; empty without operators."""
        if not self.operators:
            return []
        tables = [self.speedups(method, budget) for method in self.methods]
        tests = [paired_test(table, tables[0]) for table in tables[1:]]
        corrected = holm([test.p_value for test in tests])
        held = [replace(test, holm=value) for test, value in zip(tests, corrected, strict=True)]
        return [
            Row(
                method,
                geometric_mean(table),
                relative_speedup(table, tables[0]),
                test,
                tuple(fast_p(table, p) for p in FAST_P),
            )
            for method, table, test in zip(self.methods, tables, [None, *held], strict=True)
        ]

    def as_json(self, budgets: Sequence[int]) -> dict[str, Any]:
        """Return all metrics and all speedups as JSON values."""
        return {
            "methods": self.methods,
            "others": self.others,
            "operators": self.operators,
            "left_out": self.left_out,
            "seeds": self.seeds,
            "deterministic": self.deterministic,
            "fast_p": list(FAST_P),
            "budgets": {str(budget): [asdict(row) for row in self.rows(budget)] for budget in budgets},
            "speedups": {
                str(budget): {method: self.speedups(method, budget) for method in self.methods}
                for budget in budgets
            },
        }

    def tables(self, budgets: Sequence[int]) -> list[Table]:
        """Return a table of metrics per budget, and one of operators at the last; empty without operators."""
        if not self.operators:
            return []
        metrics = [self.metrics_table(budget, f"Budget {budget}", digits=0) for budget in budgets]
        return [*metrics, self.operators_table(budgets[-1], f"Budget {budgets[-1]}: speedup by operator")]

    def metrics_table(self, budget: int, where: str, digits: int = 1) -> Table:
        """Return geometric mean, gain over the reference and fast_p of each method, with 95 % intervals.

        P values are corrected over the methods of the table (Holm); an asterisk marks those below 0.05.
        Methods that are not compared have dashes.

        Args:
            budget: number of evaluations to consider.
            where: beginning of the title.
            digits: decimal digits of the percentages.
        """
        first = self.methods[0] if self.methods else NONE
        columns = ("method", "GM", f"GM over {first}", P_COLUMN, *(f"fast_{p:.1f} %" for p in FAST_P))
        rows = [
            (
                row.method,
                row.geometric_mean.text(3),
                *(("reference", "") if row.test is None else (row.relative.text(3), row.test.text)),
                *(share.text(digits, scale=100.0) for share in row.fast),
            )
            for row in self.rows(budget)
        ]
        rows += [(name, *(NONE for _ in columns[1:])) for name in self.others]
        size = f"{_count(len(self.operators), 'operator')}, {_count(len(self.seeds), 'seed')}"
        return Table(f"{where}: {size}, 95 % intervals", columns, tuple(rows))

    def operators_table(self, budget: int, title: str, levels: Mapping[str, str] | None = None) -> Table:
        """Return the speedup of each method on each operator, as the geometric mean over the compared seeds.

        Operators and methods that are not compared are included; a dash means that a run is missing.

        Args:
            budget: number of evaluations to consider.
            title: title of the table.
            levels: level of each operator, for an additional column.
        """
        names = (*self.methods, *self.others)
        rows = tuple(
            (
                *((operator,) if levels is None else (operator, levels[operator])),
                *(self._mean_text(name, operator, budget) for name in names),
            )
            for operator in self._seen
        )
        return Table(title, ("operator", *(() if levels is None else ("level",)), *names), rows)

    def _mean_text(self, method: str, operator: str, budget: int) -> str:
        curves = [self._curves.get((method, operator, seed)) for seed in self.seeds]
        finished = [curve.speedup_at(budget) for curve in curves if curve is not None]
        complete = finished and len(finished) == len(curves)
        return f"{geometric_mean([finished]).value:.3f}" if complete else NONE

    @property
    def _is_split(self) -> bool:
        """Whether a method that is not compared has other runs under another budget, model or chip."""
        names = [name.partition(" (")[0] for name in (*self.methods, *self.others)]
        return any(names.count(name.partition(" (")[0]) > 1 for name in self.others)

    def _is_seedless(self, method: str, operator: str) -> bool:
        curves = {self._finished(method, operator, seed).best_us for seed in self.seeds}
        return len(curves) == 1

    def _finished(self, method: str, operator: str, seed: int) -> Curve:
        curve = self._curves[method, operator, seed]
        assert curve is not None, "only operators are asked for whose runs are all finished"
        return curve


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


class Grid(NamedTuple):
    """What is compared: every method has a finished run for each operator and seed."""

    methods: tuple[str, ...]
    operators: tuple[str, ...]
    seeds: tuple[int, ...]

    @property
    def runs(self) -> int:
        """How many runs are compared."""
        return len(self.methods) * len(self.operators) * len(self.seeds)


def largest_grid(
    finished: dict[str, set[Cell]], operators: Sequence[str], reference: str | None = None
) -> Grid:
    """Return the grid with most runs, of two methods at least where any two have finished the same cell.

    Not every set of methods is tried: those that remain as the methods with fewest finished cells are left
    out one by one, those that have finished the same cell, and single ones. Of equal grids that of more
    methods is taken, then that with the first method. Within a set, seeds are taken in from the one with
    most operators on; of equal grids that with more seeds is taken.

    Args:
        finished: operators and seeds of the finished runs of each method, the methods in their order.
        operators: all operators in their order.
        reference: method that is compared in any case.
    """
    by_size = sorted(finished, key=lambda name: (name == reference, len(finished[name])))
    groups = dict.fromkeys(
        [
            *(tuple(by_size[at:]) for at in range(len(by_size))),
            *_sharing(by_size, finished, reference),
            *((name,) for name in by_size if reference in (None, name)),
        ]
    )
    grids = [_grid_of(methods, finished, operators) for methods in groups]
    first = next(iter(finished), None)
    best = max(grids, key=lambda grid: (*_worth(grid), first in grid.methods), default=Grid((), (), ()))
    return best._replace(methods=tuple(name for name in finished if name in best.methods))


def _sharing(
    methods: Sequence[str], finished: dict[str, set[Cell]], reference: str | None
) -> Iterable[tuple[str, ...]]:
    """Return the methods that have finished the same cell, for each cell, once; with the reference if any."""
    holders: dict[Cell, tuple[str, ...]] = {}
    for name in methods:
        for cell in finished[name]:
            holders[cell] = (*holders.get(cell, ()), name)
    return sorted({each for each in holders.values() if reference is None or reference in each})


def _worth(grid: Grid) -> tuple[bool, int, int]:
    return len(grid.methods) > 1 and grid.runs > 0, grid.runs, len(grid.methods)


def _grid_of(methods: Sequence[str], finished: dict[str, set[Cell]], operators: Sequence[str]) -> Grid:
    """Return the grid of exactly these methods that takes in most runs: the seeds with most operators."""
    common = set.intersection(*(finished[name] for name in methods))
    counts = {seed: sum(seed == each for _, each in common) for _, seed in common}
    fullest = sorted(counts, key=lambda seed: (-counts[seed], seed))
    grids = [Grid(tuple(methods), (), ())]
    for at in range(len(fullest)):
        seeds = sorted(fullest[: at + 1])
        grids.append(Grid(tuple(methods), _complete(common, operators, seeds), tuple(seeds)))
    return max(grids, key=lambda grid: (grid.runs, len(grid.seeds)))


def _complete(common: Collection[Cell], operators: Iterable[str], seeds: Iterable[int]) -> tuple[str, ...]:
    return tuple(name for name in operators if all((name, seed) in common for seed in seeds))
