"""Statistics of samples: medians, their intervals, paired ratios, and stopping rules. Pure functions.

Intervals are those of order statistics (inverted sign test; Conover, Practical Nonparametric
Statistics, section 3.2): they hold for every continuous distribution, and latencies are far from normal.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A median, and a range that contains the population's with a confidence of at least ``CONFIDENCE``.

    Attributes:
        median: median of the samples.
        low: lower end.
        high: upper end.
        covered: whether there are enough samples for that; if not, the range is that of the
            samples.
    """

    median: float
    low: float
    high: float
    covered: bool

    @property
    def relative_half_width(self) -> float:
        """Half the width divided by the median; infinite without enough samples."""
        return (self.high - self.low) / 2 / self.median if self.covered and self.median > 0 else math.inf


@dataclass(frozen=True)
class StopRule:
    """When to stop sampling.

    Attributes:
        min_samples: minimum number of samples.
        max_samples: maximum number of samples.
        relative_half_width: sampling ends once the median's interval is at most this wide on either side.
    """

    min_samples: int
    max_samples: int
    relative_half_width: float

    def reached(self, samples: Sequence[float]) -> bool:
        """Whether ``samples`` are enough."""
        if len(samples) < self.min_samples:
            return False
        return len(samples) >= self.max_samples or self.precise(samples)

    def precise(self, samples: Sequence[float]) -> bool:
        """Whether the interval of the median is narrow enough."""
        return median_interval(samples).relative_half_width <= self.relative_half_width


def median_interval(samples: Sequence[float]) -> Interval:
    """Return the median of ``samples`` and its interval.

    Raises:
        ValueError: there are no samples, or one is not finite.
    """
    if not samples or not all(map(math.isfinite, samples)):
        raise ValueError(f"expected finite samples, got {list(samples)[:5]}")
    ordered = sorted(samples)
    outside = _outside(len(ordered))
    covered = outside is not None
    at = outside or 0
    return Interval(statistics.median(ordered), ordered[at], ordered[len(ordered) - 1 - at], covered)


def paired_ratio(candidate: Sequence[Sequence[float]], baseline: Sequence[Sequence[float]]) -> Interval:
    """Return the ratio of the candidate's time to the baseline's, from blocks measured alternately.

    Each block of the candidate corresponds to a block of the baseline, measured directly before or after, so
    that drift between pairs cancels.

    Args:
        candidate: samples of each block.
        baseline: samples of the corresponding blocks.

    Raises:
        ValueError: the numbers of blocks differ, or one is empty or not positive.
    """
    if len(candidate) != len(baseline) or any(not block for block in (*candidate, *baseline)):
        raise ValueError(f"expected blocks in pairs, got {len(candidate)} and {len(baseline)}")
    medians = [
        (statistics.median(ours), statistics.median(theirs))
        for ours, theirs in zip(candidate, baseline, strict=True)
    ]
    if any(not value > 0 for pair in medians for value in pair):
        raise ValueError("expected times above 0")
    return median_interval([ours / theirs for ours, theirs in medians])


def drift(samples: Sequence[float]) -> float:
    """Return the median of the second half minus that of the first, relative to the median of all."""
    if len(samples) < 2:
        return 0.0
    half = len(samples) // 2
    first, second = statistics.median(samples[:half]), statistics.median(samples[-half:])
    return (second - first) / statistics.median(samples)


def _outside(count: int) -> int | None:
    """Return the number of samples below (and above) the interval; ``None`` if there are too few samples.

    The population's median is below the sample of rank ``k`` (from 0) with the probability that at most ``k``
    of ``count`` fair coins show heads.
    """
    tail, below = (1 - CONFIDENCE) / 2, 0.0
    log_all = math.lgamma(count + 1) - count * math.log(2)
    for rank in range(count):
        below += math.exp(log_all - math.lgamma(rank + 1) - math.lgamma(count - rank + 1))
        if below > tail:
            return rank - 1 if rank > 0 else None
    return None
