"""The methods, operators and seeds of a set of runs that can be compared: a grid without gaps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

Cell = tuple[str, int]  # operator, seed


class Grid(NamedTuple):
    """The compared runs: every method has a finished run for each operator and seed."""

    methods: tuple[str, ...]
    operators: tuple[str, ...]
    seeds: tuple[int, ...]

    @property
    def runs(self) -> int:
        """Number of compared runs."""
        return len(self.methods) * len(self.operators) * len(self.seeds)


def largest_grid(
    finished: dict[str, set[Cell]], operators: Sequence[str], reference: str | None = None
) -> Grid:
    """Return the grid with the most runs, of at least two methods if any two have a run in common.

    A method with few finished runs is left out if including it would exclude more runs of the
    others; the same applies to seeds and operators with gaps. Of equal grids, the one with more methods is
    chosen, then the one with more seeds.

    Args:
        finished: operators and seeds of the finished runs of each method, with methods in order.
        operators: all operators in order.
        reference: method that is always compared.
    """
    by_size = sorted(finished, key=lambda name: (name == reference, len(finished[name])))
    grids = [_grid_of(by_size[at:], finished, operators) for at in range(len(by_size))]
    best = max(grids, key=_worth, default=Grid((), (), ()))
    return best._replace(methods=tuple(name for name in finished if name in best.methods))


def _worth(grid: Grid) -> tuple[bool, int, int]:
    return len(grid.methods) > 1 and grid.runs > 0, grid.runs, len(grid.methods)


def _grid_of(methods: Sequence[str], finished: dict[str, set[Cell]], operators: Sequence[str]) -> Grid:
    """Return the grid with the most runs of exactly these methods: the seeds with the most operators."""
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
