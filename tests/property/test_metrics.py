"""Geometric mean, fast_p, their intervals, and tests of differences."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_1samp

from ascend_gym.core.errors import MisuseError
from ascend_gym.report.metrics import (
    FAST_P,
    fast_p,
    geometric_mean,
    holm,
    paired_test,
    relative_speedup,
    share,
)

SPEEDUPS = st.floats(0.5, 20.0)


@st.composite
def tables(draw, cell=SPEEDUPS):
    seeds = draw(st.integers(1, 3))
    row = st.lists(cell, min_size=seeds, max_size=seeds)
    return draw(st.lists(row, min_size=1, max_size=8))


@given(tables())
def test_the_geometric_mean_is_inside_its_interval(table):
    estimate = geometric_mean(table)
    cells = [cell for row in table for cell in row]
    assert estimate.value == pytest.approx(math.prod(cells) ** (1 / len(cells)))
    if estimate.low is not None:
        assert estimate.low < estimate.value < estimate.high


@given(tables())
def test_the_interval_holds_that_of_student(table):
    estimate = geometric_mean(table)
    if estimate.low is not None:
        means = [np.log(row).mean() for row in table]
        low, high = ttest_1samp(means, 0).confidence_interval(0.95)
        assert math.log(estimate.low) <= low + 1e-9
        assert math.log(estimate.high) >= high - 1e-9


@given(tables(), st.randoms())
def test_no_figure_depends_on_the_order_of_operators_or_seeds(table, random):
    mixed = [random.sample(row, len(row)) for row in random.sample(table, len(table))]
    assert geometric_mean(mixed) == geometric_mean(table)
    assert [fast_p(mixed, p) for p in FAST_P] == [fast_p(table, p) for p in FAST_P]
    ones = [[1.0] * len(row) for row in table]
    assert paired_test(mixed, ones) == paired_test(table, ones)


@given(tables())
def test_which_of_two_methods_is_the_reference_does_not_change_p(table):
    ones = [[1.0] * len(row) for row in table]
    assert paired_test(table, ones) == paired_test(ones, table)


@given(tables(), st.floats(0.1, 10.0))
def test_scaling_all_speedups_scales_the_geometric_mean_and_its_interval(table, factor):
    before, after = geometric_mean(table), geometric_mean([[cell * factor for cell in row] for row in table])
    for name in ("value", "low", "high") if before.low and after.low else ("value",):
        assert getattr(after, name) == pytest.approx(getattr(before, name) * factor)


@given(tables())
def test_fast_p_falls_with_p_and_is_a_share(table):
    shares = [fast_p(table, p) for p in FAST_P]
    values = [share.value for share in shares]
    assert values == sorted(values, reverse=True)
    assert all(0 <= share.low <= share.high <= 1 for share in shares)


@given(tables(st.floats(1.0, 1.9)), st.integers(0, 7))
def test_one_more_fast_operator_raises_fast_p_by_its_share(table, at):
    at %= len(table)
    faster = [[3.0] * len(row) if number == at else row for number, row in enumerate(table)]
    assert fast_p(faster, 2.0).value == pytest.approx(1 / len(table))


@given(tables())
def test_a_method_compared_with_itself_is_exactly_as_fast(table):
    estimate = relative_speedup(table, table)
    assert (estimate.value, estimate.low, estimate.high) == (1.0, None, None)
    assert estimate.text(2) == "1.00 [-]"
    assert paired_test(table, table).p_value == 1.0


def test_fast_p_counts_what_is_above_p_only():
    assert fast_p([[1.2], [1.2000001], [1.0], [3.0]], 1.2).value == 0.5
    assert fast_p([[1.0, 1.0, 3.0], [1.0, 1.0, 1.0]], 1.0).value == pytest.approx(1 / 6)


def test_operators_that_are_all_equal_give_no_interval():
    varied, constant = geometric_mean([[1.0], [2.0], [4.0], [1.5]]), geometric_mean([[1.7]] * 4)
    assert varied.low < varied.value < varied.high
    assert (constant.value, constant.low) == (pytest.approx(1.7), None)
    assert geometric_mean([[1.0, 2.0, 4.0]]).low is None, "seeds of one operator tell nothing of others"


def test_a_tail_of_large_gains_lengthens_the_upper_side():
    symmetric = geometric_mean([[1.0], [2.0], [4.0]])
    assert symmetric.high / symmetric.value == pytest.approx(symmetric.value / symmetric.low)
    skewed = geometric_mean([[1.0], [1.0], [1.1], [1.1], [6.0]])
    assert skewed.high / skewed.value > 1.5 * skewed.value / skewed.low


@given(st.integers(1, 40), st.integers(0, 40))
def test_the_interval_of_a_share_of_single_runs_is_that_of_scipy(count, hits):
    hits = min(hits, count)
    found = share([[at < hits] for at in range(count)])
    expected = binomtest(hits, count).proportion_ci(0.95, "wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_seeds_that_agree_count_once_and_seeds_that_do_not_count_more():
    agree = share([[at % 2 == 0] * 3 for at in range(12)])
    mixed = share([[at % 2 == 0, at % 3 == 0, at % 4 == 0] for at in range(12)])
    once = share([[at % 2 == 0] for at in range(12)])
    assert agree == once
    assert mixed.high - mixed.low < once.high - once.low


@given(st.lists(st.floats(0, 1), max_size=8))
def test_corrected_p_values_are_ordered_as_they_were_and_not_smaller(p_values):
    corrected = holm(p_values)
    assert all(
        p <= after <= min(1.0, len(p_values) * p) for p, after in zip(p_values, corrected, strict=True)
    )
    by_p = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [corrected[at] for at in by_p] == sorted(corrected)


def test_holm_at_the_example_of_a_step_down():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_a_test_with_few_operators_says_what_it_can_give():
    three = paired_test([[2.0], [3.0], [4.0], [1.0]], [[1.0]] * 4)
    assert (three.p_value, three.least) == (0.25, 0.25), "the fourth does not differ, so three count"
    assert three.text == "0.25 (least 0.25)"
    assert paired_test([[2.0]] * 6, [[1.0]] * 6).text == "0.0312 *"


def test_pairing_sees_through_differences_between_operators():
    slow, fast = [[1.0], [2.0], [9.0]], [[1.1], [2.2], [10.0]]
    assert relative_speedup(fast, slow).low > 1.08
    assert geometric_mean(fast).low < geometric_mean(slow).high


@pytest.mark.parametrize(
    "table", [[], [[]], [[1.0], [1.0, 2.0]], [[0.0]], [[-1.0]], [[float("nan")]], [[float("inf")]]]
)
def test_what_is_no_table_of_speedups_is_refused(table):
    with pytest.raises(MisuseError, match="expected"):
        geometric_mean(table)


def test_tables_of_different_shapes_are_not_compared():
    with pytest.raises(MisuseError, match="one shape"):
        relative_speedup([[1.0]], [[1.0], [2.0]])
