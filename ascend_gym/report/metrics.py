"""Metrics over a set of operators, with bootstrap confidence intervals.

All of them are based on speedups: the latency of an operator's own sources divided by that of the best
candidate of a run. A run that found nothing, or whose baseline failed, counts as a speedup of 1, so that a
method never benefits from failing.

Geometric mean and fast_p are those of the AscendOptimizer paper, version 1 (fast_p is its equation 6: the
share of operators with a speedup above p). With several seeds per operator, the mean over its seeds
counts: of the logarithm for the geometric mean, of "faster than p" for fast_p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ascend_gym.core.errors import MisuseError

FAST_P = (1.0, 1.2, 1.4, 1.8, 2.0)
BUDGETS = (5, 10, 20, 40)
OPERATORS_FOR_P = 6  # of the 2**n flips of n operators at least two are as large as any: 2 / 2**5 > 0.05

_CONFIDENCE = 0.95
_RESAMPLES = 2000
_EXACT_OPERATORS = 12
_FLIPS = 20_000
_ROUNDING = 1e-12  # flips that differ in the order of the sum only are equal

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Estimate:
    """A metric with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def text(self, digits: int, scale: float = 1.0) -> str:
        """Return the value times ``scale``, with its interval in brackets."""
        value, low, high = (f"{each * scale:.{digits}f}" for each in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]"


def geometric_mean(speedups: Sequence[Sequence[float]]) -> Estimate:
    """Return the geometric mean of speedups of shape (operators, seeds).

    Raises:
        MisuseError: they are not a table of positive numbers.
    """
    logarithms = np.log(_table(speedups))
    mean = _bootstrapped(logarithms)
    return Estimate(float(np.exp(mean.value)), float(np.exp(mean.low)), float(np.exp(mean.high)))


def fast_p(speedups: Sequence[Sequence[float]], p: float) -> Estimate:
    """Return the share of operators with a speedup above ``p``; speedups are of shape (operators, seeds).

    Raises:
        MisuseError: they are not a table of positive numbers.
    """
    return _bootstrapped((_table(speedups) > p).astype(np.float64))


def share(hits: Sequence[Sequence[bool]]) -> Estimate:
    """Return the share of hits, of shape (operators, seeds).

    Raises:
        MisuseError: rows differ in length, or there are none.
    """
    lengths = {len(row) for row in hits}
    if len(lengths) != 1 or 0 in lengths:
        raise MisuseError(f"expected the same seeds, at least one, for each operator; got {sorted(lengths)}")
    return _bootstrapped(np.asarray(hits, dtype=np.float64))


def relative_speedup(speedups: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> Estimate:
    """Return the geometric mean of the ratio between two methods' speedups.

    Both are of shape (operators, seeds) for the same operators and seeds in the same order. Operators are
    compared one by one, so the interval is narrower than those of the two methods suggest.

    Raises:
        MisuseError: they are not tables of positive numbers, or differ in shape.
    """
    table, other = _paired(speedups, others)
    return geometric_mean((table / other).tolist())


def paired_p_value(speedups: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> float:
    """Return the two-sided p value of the difference between two methods.

    A sign-flip permutation test on the mean logarithm of the ratio of each operator (Fisher): all flips for
    up to ``_EXACT_OPERATORS`` operators, else ``_FLIPS`` random ones, including the observed one.

    Raises:
        MisuseError: they are not tables, or differ in shape.
    """
    table, other = _paired(speedups, others)
    differences = np.log(table / other).mean(axis=1)
    operators = len(differences)
    if operators <= _EXACT_OPERATORS:
        signs = np.asarray(list(product((1.0, -1.0), repeat=operators)))
    else:
        drawn = np.random.default_rng([operators]).integers(0, 2, (_FLIPS, operators)) * 2.0 - 1.0
        signs = np.concatenate([np.ones((1, operators)), drawn])
    means = np.abs(signs @ differences)
    return float((means >= means[0] * (1.0 - _ROUNDING)).mean())


def _paired(speedups: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> tuple[Array, Array]:
    table, other = _table(speedups), _table(others)
    if table.shape != other.shape:
        raise MisuseError(f"expected tables of one shape, got {table.shape} and {other.shape}")
    return table, other


def _table(speedups: Sequence[Sequence[float]]) -> Array:
    """Return the speedups as an array of shape (operators, seeds).

    Raises:
        MisuseError: rows differ in length, there are none, or a speedup is not a positive finite number.
    """
    lengths = {len(row) for row in speedups}
    if len(lengths) != 1 or 0 in lengths:
        raise MisuseError(f"expected the same seeds, at least one, for each operator; got {sorted(lengths)}")
    table = np.asarray(speedups, dtype=np.float64)
    if not (np.isfinite(table).all() and (table > 0).all()):
        raise MisuseError("expected positive, finite speedups; a search that found nothing counts as 1")
    return table


def _bootstrapped(cells: Array) -> Estimate:
    """Return the mean over operators of the mean over seeds, with a percentile bootstrap interval.

    Operators are drawn with replacement, and for each of them its seeds (nested bootstrap). The
    draws depend only on the shape of the table, so equal tables give equal intervals.
    ``scipy.stats.bootstrap`` draws at one level only, and a plain install has no scipy.
    """
    operators, seeds = cells.shape
    generator = np.random.default_rng([operators, seeds])
    rows = generator.integers(operators, size=(_RESAMPLES, operators, 1))
    columns = generator.integers(seeds, size=(_RESAMPLES, operators, seeds))
    means = cells[rows, columns].mean(axis=(1, 2))
    tail = (1.0 - _CONFIDENCE) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return Estimate(float(cells.mean()), float(low), float(high))
