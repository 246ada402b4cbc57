"""Statistics of samples."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_daemon.cann.sampling import StopRule, drift, median_interval, paired_ratio

TIMES = st.lists(st.floats(0.5, 1e6), min_size=1, max_size=80)
BLOCKS = st.lists(st.lists(st.floats(0.5, 1e6), min_size=1, max_size=5), min_size=1, max_size=12)


@given(TIMES)
def test_the_interval_holds_the_median_and_lies_within_the_samples(samples: list[float]) -> None:
    interval = median_interval(samples)
    assert min(samples) <= interval.low <= interval.median <= interval.high <= max(samples)
    assert interval.covered == (len(samples) >= 6), "2 * 0.5 ** 6 is the first below 5 %"


@given(TIMES, st.randoms(use_true_random=False), st.sampled_from([0.5, 2.0, 1024.0]))
def test_order_does_not_matter_and_units_only_scale(
    samples: list[float], source: random.Random, factor: float
) -> None:
    shuffled = source.sample(samples, len(samples))
    assert median_interval(shuffled) == median_interval(samples)
    scaled = median_interval([value * factor for value in samples])
    assert scaled.low == median_interval(samples).low * factor
    assert scaled.high == median_interval(samples).high * factor


@given(TIMES, st.floats(0.0, 1e6))
def test_a_slower_sample_never_lowers_the_interval(samples: list[float], more: float) -> None:
    slower = [samples[0] + more, *samples[1:]]
    before, after = median_interval(samples), median_interval(slower)
    assert (after.low, after.median, after.high) >= (before.low, before.median, before.high)


@pytest.mark.parametrize("count", [6, 9, 25, 60])
def test_the_interval_covers_as_often_as_it_says(count: int) -> None:
    source = random.Random(count)
    covered = 0
    for _ in range(1500):
        interval = median_interval([source.lognormvariate(0.0, 0.3) for _ in range(count)])
        covered += interval.low <= 1.0 <= interval.high
    assert covered / 1500 >= 0.935  # 0.95 less 2.7 standard deviations of 1500 trials


def test_many_samples_are_no_trouble() -> None:
    interval = median_interval([float(value) for value in range(5000)])
    assert 2400 < interval.low < 2499.5 < interval.high < 2600


@given(TIMES)
def test_sampling_ends_between_its_limits(samples: list[float]) -> None:
    rule = StopRule(min_samples=10, max_samples=40, relative_half_width=0.01)
    if len(samples) < 10:
        assert not rule.reached(samples)
    elif len(samples) >= 40:
        assert rule.reached(samples)
    else:
        assert rule.reached(samples) == (median_interval(samples).relative_half_width <= 0.01)


def test_steady_samples_end_early_and_noisy_ones_late() -> None:
    rule = StopRule(10, 200, 0.01)
    source = random.Random(1)
    assert rule.reached([100.0 + source.random() for _ in range(10)])
    assert not rule.reached([100.0 * source.lognormvariate(0, 0.2) for _ in range(30)])


@given(BLOCKS, st.floats(0.1, 10))
def test_a_ratio_is_of_pairs_so_that_drift_cancels(blocks: list[list[float]], factor: float) -> None:
    slowdowns = [1.0 + 0.3 * number for number in range(len(blocks))]
    theirs = [[value * slow for value in block] for block, slow in zip(blocks, slowdowns, strict=True)]
    ours = [[value * factor for value in block] for block in theirs]
    ratio = paired_ratio(ours, theirs)
    assert ratio.low == pytest.approx(factor)
    assert ratio.high == pytest.approx(factor)


def test_misuse_is_refused() -> None:
    for samples in ([], [math.nan], [1.0, math.inf]):
        with pytest.raises(ValueError, match="finite"):
            median_interval(samples)
    with pytest.raises(ValueError, match="in pairs"):
        paired_ratio([[1.0]], [])
    with pytest.raises(ValueError, match="above 0"):
        paired_ratio([[1.0]], [[0.0]])


def test_drift_tells_a_trend_from_steadiness() -> None:
    assert drift([1.0] * 10) == 0.0
    assert drift([1.0]) == 0.0
    assert drift([10.0] * 5 + [11.0] * 5) == pytest.approx(1 / 10.5)
