"""Geometric mean, fast_p and their bootstrap intervals."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_gym.core.errors import MisuseError
from ascend_gym.report.metrics import FAST_P, fast_p, geometric_mean, relative_speedup

SPEEDUPS = st.floats(0.5, 20.0)


@st.composite
def tables(draw, cell=SPEEDUPS):
    seeds = draw(st.integers(1, 3))
    row = st.lists(cell, min_size=seeds, max_size=seeds)
    return draw(st.lists(row, min_size=1, max_size=8))


@given(tables())
def test_the_geometric_mean_is_inside_its_interval_and_the_table(table):
    estimate = geometric_mean(table)
    cells = [cell for row in table for cell in row]
    assert estimate.value == pytest.approx(math.prod(cells) ** (1 / len(cells)))
    assert min(cells) * (1 - 1e-9) <= estimate.low <= estimate.high <= max(cells) * (1 + 1e-9)


@given(tables(), st.floats(0.1, 10.0))
def test_scaling_all_speedups_scales_the_geometric_mean_and_its_interval(table, factor):
    before, after = geometric_mean(table), geometric_mean([[cell * factor for cell in row] for row in table])
    for name in ("value", "low", "high"):
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
    assert (estimate.value, estimate.low, estimate.high) == (1.0, 1.0, 1.0)


def test_fast_p_counts_what_is_above_p_only():
    assert fast_p([[1.2], [1.2000001], [1.0], [3.0]], 1.2).value == 0.5
    assert fast_p([[1.0, 1.0, 3.0], [1.0, 1.0, 1.0]], 1.0).value == pytest.approx(1 / 6)


def test_equal_tables_give_equal_intervals():
    table = [[1.0, 1.1], [2.0, 1.7], [1.4, 1.4]]
    assert geometric_mean(table) == geometric_mean(table)


def test_an_interval_has_a_width_where_operators_differ_and_none_where_not():
    varied, constant = geometric_mean([[1.0], [2.0], [4.0], [1.5]]), geometric_mean([[1.7]] * 4)
    assert varied.low < varied.value < varied.high
    assert constant.low == constant.high == pytest.approx(1.7)


def test_seeds_alone_give_an_interval_too():
    one_operator = geometric_mean([[1.0, 2.0, 4.0]])
    assert one_operator.low < 2.0 < one_operator.high


def test_pairing_sees_through_differences_between_operators():
    slow, fast = [[1.0], [2.0], [9.0]], [[1.1], [2.2], [9.9]]
    assert relative_speedup(fast, slow).low == pytest.approx(1.1)
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
