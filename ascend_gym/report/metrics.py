"""Metrics over a set of operators, with 95 % intervals and tests: the one place of both.

All of them are based on speedups: the latency of an operator's own sources divided by that of the best
candidate of a run. A run that found nothing, or whose baseline failed, counts as a speedup of 1, so that a
method never benefits from failing.

Geometric mean and fast_p are those of the AscendOptimizer paper, version 1 (fast_p is its equation 6: the
share of operators with a speedup above p). With several seeds per operator, the mean over its seeds
counts: of the logarithm for the geometric mean, of "faster than p" for fast_p.

Operators are the sample: an interval tells where the figure of further operators of the same kind is to be
expected. Nothing here depends on the order of the operators. What the intervals cover is simulated by
``benchmarks/methods/interval_coverage.py``. scipy takes a while to import and is imported where it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ascend_gym.core.errors import MisuseError

FAST_P = (1.0, 1.2, 1.4, 1.8, 2.0)
BUDGETS = (5, 10, 20, 40)
SIGNIFICANT = 0.05
NO_INTERVAL_NOTE = "[-]: one operator, or operators that are all equal, give no interval."
P_NOTE = (
    "p is exact up to 14 operators. (least x): with so few operators that differ, the test cannot give "
    "less than x, so it cannot tell any difference from chance at 5 %."
)

_TAIL = 0.025
_FLIPS = 20_000  # more than 2**14
_LOG_STEP = 1e-9  # logarithms are counted in these steps, so that equal sums are equal

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Estimate:
    """A metric with its 95 % confidence interval.

    Attributes:
        value: the metric.
        low: lower end; ``None`` where the operators do not tell how much they vary.
        high: upper end; likewise.
    """

    value: float
    low: float | None
    high: float | None

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends, for drawing: the value twice where there is no interval."""
        return (self.value if self.low is None else self.low, self.value if self.high is None else self.high)

    def text(self, digits: int, scale: float = 1.0) -> str:
        """Return the value times ``scale``, with its interval in brackets."""
        if self.low is None or self.high is None:
            return f"{self.value * scale:.{digits}f} [-]"
        value, low, high = (f"{each * scale:.{digits}f}" for each in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]"


@dataclass(frozen=True)
class PairedTest:
    """The outcome of a test whether two methods differ.

    Attributes:
        p_value: two-sided p value.
        least: smallest p value that so many differing operators can give.
        holm: ``p_value`` corrected over the methods of a comparison; equal to it for a single one.
    """

    p_value: float
    least: float
    holm: float

    @property
    def text(self) -> str:
        """The corrected p value; with an asterisk below 0.05, or with the least one if that is not below."""
        if self.least >= SIGNIFICANT:
            return f"{self.holm:.3g} (least {self.least:.3g})"
        return f"{self.holm:.3g}{' *' if self.holm < SIGNIFICANT else ''}"


def geometric_mean(speedups: Sequence[Sequence[float]]) -> Estimate:
    """Return the geometric mean of speedups of shape (operators, seeds).

    Raises:
        MisuseError: they are not a table of positive numbers.
    """
    logarithms = np.log(_table(speedups))
    value = math.exp(math.fsum(logarithms.flat) / logarithms.size)
    ends = _mean_interval(_over_seeds(logarithms))
    return Estimate(value, *((None, None) if ends is None else map(math.exp, ends)))


def fast_p(speedups: Sequence[Sequence[float]], p: float) -> Estimate:
    """Return the share of operators with a speedup above ``p``; speedups are of shape (operators, seeds).

    Raises:
        MisuseError: they are not a table of positive numbers.
    """
    return share((_table(speedups) > p).tolist())


def share(hits: Sequence[Sequence[bool]]) -> Estimate:
    """Return the share of hits, of shape (operators, seeds), with a score interval (Wilson 1927).

    The seeds of an operator are no independent hits. The number of hits that counts is what the variance
    between operators comes to, of which a t quantile with so few operators takes its part (Korn and
    Graubard 1998); it is at least the number of operators and at most that of runs.

    Raises:
        MisuseError: rows differ in length, or there are none.
    """
    lengths = {len(row) for row in hits}
    if len(lengths) != 1 or 0 in lengths:
        raise MisuseError(f"expected the same seeds, at least one, for each operator; got {sorted(lengths)}")
    from scipy.special import ndtri, stdtrit

    operators, seeds = len(hits), lengths.pop()
    rates = [sum(row) / seeds for row in hits]
    value, z = math.fsum(rates) / operators, float(ndtri(1 - _TAIL))
    effective = float(operators)
    variance = math.fsum((rate - value) ** 2 for rate in rates)
    if operators > 1 and variance > 0:
        variance /= (operators - 1) * operators
        found = value * (1 - value) / variance * (z / float(stdtrit(operators - 1, 1 - _TAIL))) ** 2
        effective = min(max(found, operators), operators * seeds)
    shrunk = 1 + z * z / effective
    middle = (value + z * z / (2 * effective)) / shrunk
    half = z / shrunk * math.sqrt(value * (1 - value) / effective + (z / (2 * effective)) ** 2)
    return Estimate(value, max(0.0, min(middle - half, value)), min(1.0, max(middle + half, value)))


def relative_speedup(speedups: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> Estimate:
    """Return the geometric mean of the ratio between two methods' speedups.

    Both are of shape (operators, seeds) for the same operators and seeds in the same order. Operators are
    compared one by one, so the interval is narrower than those of the two methods suggest.

    Raises:
        MisuseError: they are not tables of positive numbers, or differ in shape.
    """
    return geometric_mean(_ratios(speedups, others).tolist())


def paired_test(speedups: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> PairedTest:
    """Test whether two methods differ, operator by operator.

    A two-sided sign-flip permutation test on the mean logarithm of the ratio of each operator (Fisher): all
    flips for up to 14 operators that differ, else ``_FLIPS`` random ones, the same for the same ratios.

    Raises:
        MisuseError: they are not tables, or differ in shape.
    """
    steps = np.round(_over_seeds(np.log(_ratios(speedups, others))) / _LOG_STEP)
    steps = np.sort(steps[steps != 0])
    if len(steps) < 2:  # both signs of a single one are as far from 0
        return PairedTest(1.0, 1.0, 1.0)
    if steps.sum() < 0:
        steps = np.sort(-steps)
    from scipy.stats import permutation_test

    found = permutation_test(
        (steps,),
        lambda flipped, axis: np.abs(flipped.sum(axis=axis)),
        permutation_type="samples",
        alternative="greater",
        vectorized=True,
        n_resamples=_FLIPS,
        rng=np.random.default_rng(0),
    )
    p_value = float(found.pvalue)
    return PairedTest(p_value, 2.0 ** (1 - len(steps)), p_value)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for being several, after Holm (1979), in the same order."""
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        corrected[at] = largest
    return corrected


def _ratios(speedups: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> Array:
    table, other = _table(speedups), _table(others)
    if table.shape != other.shape:
        raise MisuseError(f"expected tables of one shape, got {table.shape} and {other.shape}")
    return table / other


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


def _over_seeds(cells: Array) -> Array:
    """Return the mean of each operator over its seeds, the same in whatever order they come."""
    return np.asarray([math.fsum(row) / len(row) for row in cells], dtype=np.float64)


def _mean_interval(values: Array) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of ``values``, one per operator; ``None`` if they do not differ.

    It holds two intervals: Student's t, and the t corrected for the skewness of the sample (Hall 1992, On
    the removal of skewness by transformation). Log speedups are skewed, since they end at 0: there, t alone
    covers less than 90 % with few operators, because a sample without a large gain says too little of large
    gains. Without skewness the two together cover up to 97 % (docs/comparison.md).
    """
    count = len(values)
    if count < 2 or np.ptp(values) <= _LOG_STEP:
        return None
    from scipy.special import stdtrit

    mean = math.fsum(values) / count
    deviations = np.sort(values - mean)
    spread = math.sqrt(math.fsum(deviations**2) / (count - 1))
    t = float(stdtrit(count - 1, 1 - _TAIL))
    scores = [(t, -t)]
    skewness = 0.0
    if count > 2:
        skewness = math.fsum((deviations / spread) ** 3) * count / ((count - 1) * (count - 2))
    if abs(skewness) > _LOG_STEP:
        x = skewness / math.sqrt(count)
        high, low = (float(3 / x * (np.cbrt(1 + x * (z - x / 6)) - 1)) for z in (t, -t))
        scores.append((high, low))
    error = spread / math.sqrt(count)
    return mean - max(high for high, _ in scores) * error, mean - min(low for _, low in scores) * error
