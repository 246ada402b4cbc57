"""Methods side by side: what is compared, at which budgets, and how it is written down."""

import json

import pytest

from ascend_gym.core.errors import MisuseError
from ascend_gym.report.comparison import Comparison, Run
from ascend_gym.report.curves import Curve

METHODS = {"plain": (100.0, 80.0, 50.0), "clever": (100.0, 40.0, 25.0)}


def _runs(operators=("core/a", "core/b"), seeds=(0, 1)):
    return [
        Run(method, operator, seed, Curve(best_us, "budget_spent"))
        for operator in operators
        for seed in seeds
        for method, best_us in METHODS.items()
    ]


def test_metrics_at_each_budget_come_from_the_curves():
    comparison = Comparison(_runs())
    assert comparison.speedups("plain", 1) == [[1.25, 1.25], [1.25, 1.25]]
    plain, clever = comparison.rows(2)
    assert plain.geometric_mean.value == pytest.approx(2.0)
    assert clever.geometric_mean.value == pytest.approx(4.0)
    assert (plain.relative.value, clever.relative.low) == pytest.approx((1.0, 2.0))
    assert [share.value for share in plain.fast] == [1, 1, 1, 1, 0]


def test_an_operator_with_a_run_missing_is_left_out_for_every_method():
    runs = _runs()
    runs[-1] = Run("clever", "core/b", 1, None)
    comparison = Comparison(runs)
    assert (comparison.operators, comparison.left_out) == (["core/a"], ["core/b"])
    assert comparison.speedups("plain", 2) == [[2.0, 2.0]]
    assert Comparison(_runs()[:-1]).left_out == ["core/b"]


def test_without_a_complete_operator_there_are_no_metrics():
    comparison = Comparison([Run("plain", "core/a", 0, None)])
    assert comparison.rows(5) == []
    assert [table.rows for table in comparison.tables([5])] == [(), ()]


def test_a_search_that_failed_counts_as_a_speedup_of_one():
    runs = [*_runs(("core/a",), (0,)), Run("plain", "core/c", 0, Curve((), "baseline_failed"))]
    runs.append(Run("clever", "core/c", 0, Curve((), "baseline_failed")))
    assert Comparison(runs).speedups("clever", 2) == [[4.0], [1.0]]


def test_two_runs_of_the_same_are_refused():
    with pytest.raises(MisuseError, match="two runs of plain on core/a with seed 0"):
        Comparison([*_runs(), *_runs()])


def test_tables_in_markdown():
    metrics, operators = Comparison(_runs()).tables([2])
    lines = metrics.markdown.splitlines()
    assert lines[0] == "### Budget 2: 2 operators, 2 seeds, 95 % intervals"
    assert lines[3].startswith("| --- | ---: |")
    assert lines[5].startswith(
        "| clever | 4.000 [4.000, 4.000] | 2.000 [2.000, 2.000] | 0.5 | 100 [100, 100] |"
    )
    assert "| core/b | 2.000 | 4.000 |" in operators.markdown


def test_everything_is_json():
    document = json.loads(json.dumps(Comparison(_runs()).as_json([1, 2])))
    assert document["budgets"]["2"][1]["method"] == "clever"
    assert document["speedups"]["1"]["clever"] == [[2.5, 2.5], [2.5, 2.5]]
    assert document["left_out"] == []
