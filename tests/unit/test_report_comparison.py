"""Methods side by side: what is compared, at which budgets, and how it is written down."""

import io
import json
from dataclasses import asdict

import numpy as np
import pytest
from rich.console import Console
from synthetic_runs import invented_run

from ascend_gym.core.errors import MisuseError
from ascend_gym.report.comparison import Comparison, Curve, Run, figure_notes
from ascend_gym.report.leaderboard import paired_comparison
from ascend_gym.report.metrics import P_NOTE, holm
from ascend_gym.report.page.results import read_results
from ascend_gym.report.sweep_summary import print_table, summary_notes, summary_tables
from ascend_gym.sweep.store import ResultsStore

METHODS = {"plain": (100.0, 80.0, 50.0), "clever": (100.0, 40.0, 25.0)}


def _runs(operators=("core/a", "core/b"), seeds=(0, 1)):
    return [
        Run(method, operator, seed, Curve(best_us, "budget_spent"))
        for operator in operators
        for seed in seeds
        for method, best_us in METHODS.items()
    ]


def test_metrics_at_each_budget_come_from_the_curves():
    comparison = Comparison(_runs(), reference="plain")
    assert comparison.speedups("plain", 1) == [[1.25, 1.25], [1.25, 1.25]]
    plain, clever = comparison.rows(2)
    assert plain.geometric_mean.value == pytest.approx(2.0)
    assert clever.geometric_mean.value == pytest.approx(4.0)
    assert (plain.relative.value, clever.relative.value) == pytest.approx((1.0, 2.0))
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
    assert comparison.tables([5]) == []


def test_a_search_that_failed_counts_as_a_speedup_of_one():
    runs = [*_runs(("core/a",), (0,)), Run("plain", "core/c", 0, Curve((), "baseline_failed"))]
    runs.append(Run("clever", "core/c", 0, Curve((), "baseline_failed")))
    assert Comparison(runs).speedups("clever", 2) == [[4.0], [1.0]]


def test_two_runs_of_the_same_are_refused():
    with pytest.raises(MisuseError, match="two runs of plain on core/a with seed 0"):
        Comparison([*_runs(), *_runs()])


def test_tables_in_markdown():
    metrics, operators = Comparison(_runs(), reference="plain").tables([2])
    lines = metrics.markdown.splitlines()
    assert lines[0] == "### Budget 2: 2 operators, 2 seeds, 95 % intervals"
    assert lines[3].startswith("| --- | ---: |")
    assert lines[5].startswith("| clever | 4.000 [-] | 2.000 [-] | 0.5 (least 0.5) | 100 [34, 100] |")
    assert "| core/b | 2.000 | 4.000 |" in operators.markdown


def test_everything_is_json():
    document = json.loads(json.dumps(Comparison(_runs(), "plain").as_json([1, 2])))
    assert document["budgets"]["2"][1]["method"] == "clever"
    assert document["speedups"]["1"]["clever"] == [[2.5, 2.5], [2.5, 2.5]]
    assert document["left_out"] == []


def _named(method, operators, seeds, best_us=(100.0, 50.0)):
    return [
        Run(method, operator, seed, Curve((*best_us, best_us[-1] - seed), "budget_spent"))
        for operator in operators
        for seed in seeds
    ]


FOUR = ("core/a", "core/b", "core/c", "core/d")


def test_notes_tell_which_runs_an_operator_that_is_left_out_lacks():
    runs = [*_named("best-of-n", FOUR, range(2)), *_named("openevolve", FOUR, range(2))]
    runs = [run for run in runs if run.operator != "core/c" or run.method == "best-of-n"]
    assert runs[-1].operator == "core/d"
    runs[-1] = Run("openevolve", "core/d", 1, None)
    assert Comparison(runs).notes() == [
        "Left out, because runs of openevolve are missing: core/c.",
        "Left out, because runs of openevolve are not finished: core/d.",
    ]


def test_operators_with_another_budget_are_not_said_to_lack_runs(tmp_path):
    """Reports name methods by their budgets where runs have several."""
    with ResultsStore(tmp_path / "results.sqlite", write=True) as store:
        for operator, budget in (("core/a", 4), ("core/b", 4), ("core/c", 4), ("core/d", 8)):
            for method in ("best-of-n", "openevolve"):
                store.put(invented_run(operator, 1, method, 0, budget))
        notes = read_results(store, store.runs()).main.notes()
    assert (
        "Left out, because only methods that are not compared have runs of it "
        "(best-of-n (budget 8), openevolve (budget 8)): core/d."
    ) in notes
    assert not any("missing" in said or "not finished" in said for said in notes)


def test_a_stray_run_takes_nothing_from_the_others():
    runs = [*_named("best-of-n", FOUR, range(3)), *_named("openevolve", FOUR, range(3))]
    comparison = Comparison([*runs, *_named("ascend-optimizer", ("core/a",), (0,))])
    assert comparison.methods == ["best-of-n", "openevolve"]
    assert (comparison.operators, comparison.seeds) == (list(FOUR), [0, 1, 2])
    metrics, operators = comparison.tables([1])
    assert metrics.rows[-1] == ("ascend-optimizer", *["-"] * 8)
    assert operators.columns == ("operator", "best-of-n", "openevolve", "ascend-optimizer")
    assert operators.rows[0] == ("core/a", "2.000", "2.000", "-"), "two of three seeds are missing"
    assert any("ascend-optimizer (1 finished)" in said for said in comparison.notes())
    assert comparison.as_json([1])["others"] == {"ascend-optimizer": 1}


def test_methods_with_different_seeds_are_compared_on_those_they_share():
    runs = [*_named("best-of-n", FOUR, range(5)), *_named("openevolve", FOUR, (1,))]
    comparison = Comparison(runs)
    assert (comparison.methods, comparison.seeds) == (["best-of-n", "openevolve"], [1])
    assert "Seeds left out likewise: 0, 2, 3, 4." in comparison.notes()


def test_a_seed_that_has_only_begun_leaves_no_operator_out():
    comparison = Comparison([*_named("best-of-n", FOUR, (0,)), *_named("best-of-n", FOUR[:1], (1,))])
    assert (comparison.operators, comparison.seeds) == (list(FOUR), [0])


def test_the_reference_can_be_chosen_and_is_compared_in_any_case():
    runs = [*_named("best-of-n", FOUR, (0, 1)), *_named("openevolve", FOUR, (0, 1))]
    runs += _named("ppo", FOUR[:1], (0,))
    assert Comparison(runs).methods[0] == "best-of-n"
    assert Comparison(runs, "openevolve").methods == ["openevolve", "best-of-n"]
    assert Comparison(runs, "ppo").methods[0] == "ppo"
    with pytest.raises(MisuseError, match="reference 'greedy'; methods with runs: best-of-n"):
        Comparison(runs, "greedy")


def test_the_reference_does_not_depend_on_the_order_of_runs():
    runs = [*_named("openevolve", FOUR, (0,)), *_named("ascend-optimizer", FOUR, (0,))]
    runs += _named("best-of-n", FOUR, (0,))
    for arranged in (runs, runs[::-1]):
        columns = Comparison(arranged).tables([1])[0].columns
        assert columns[2] == "GM over best-of-n"


def test_methods_whose_seeds_are_equal_are_called_deterministic():
    same = [Run("greedy-rules", each, seed, Curve((9.0, 3.0), "x")) for each in FOUR for seed in (0, 1)]
    comparison = Comparison([*_named("best-of-n", FOUR, (0, 1)), *same])
    assert comparison.deterministic == ["greedy-rules"]
    assert any(said.startswith("Deterministic") and "greedy-rules" in said for said in comparison.notes())
    assert Comparison(_named("best-of-n", FOUR, (0,))).deterministic == [], "one seed shows nothing"


@pytest.mark.parametrize(("operators", "has_p"), [(5, False), (6, True)])
def test_p_values_need_six_operators(operators, has_p):
    names = [f"core/{at}" for at in range(operators)]
    comparison = Comparison([*_named("best-of-n", names, (0,)), *_named("b", names, (0,), (100.0, 25.0))])
    (p_text,) = {row[3] for row in comparison.metrics_table(1, "t").rows if row[0] == "b"}
    assert p_text == ("0.0312 *" if has_p else "0.0625 (least 0.0625)")
    assert figure_notes([comparison.metrics_table(1, "t")]).count(P_NOTE) == (not has_p)


def test_every_command_has_the_same_figures_whatever_the_order_of_runs():
    generator = np.random.default_rng(5)
    runs = [
        Run(method, f"core/{at}", seed, Curve((100.0, 100.0 / factor), "budget_spent"))
        for method in ("best-of-n", "greedy-rules", "iterate")
        for at in range(9)
        for seed, factor in enumerate(np.exp(generator.gamma(2, 0.2, 2)).tolist())
    ]
    rows = Comparison(runs).rows(1)
    mixed = [runs[at] for at in generator.permutation(len(runs))]
    assert Comparison(mixed).rows(1) == rows
    of = {name: [run for run in mixed if run.method == name] for name in ("best-of-n", "greedy-rules")}
    pair = paired_comparison(of["greedy-rules"], of["best-of-n"], 1)
    assert pair["ratio"] == asdict(rows[1].relative)
    assert pair["geometric_mean"] == [asdict(row.geometric_mean) for row in (rows[1], rows[0])]
    assert pair["test"]["p_value"] == rows[1].test.p_value
    assert rows[1].test.holm == pytest.approx(holm([row.test.p_value for row in rows[1:]])[0]), (
        "a sweep corrects over its methods"
    )


def test_a_part_of_a_comparison_has_its_methods_and_seeds():
    runs = [*_named("best-of-n", FOUR, (0, 1)), *_named("b", FOUR, (0, 1))]
    part = Comparison(runs).restricted(["core/b"])
    assert (part.methods, part.operators, part.seeds) == (["best-of-n", "b"], ["core/b"], [0, 1])
    assert len(part.speedups("b", 1)) == 1


@pytest.mark.parametrize("width", [80, 200])
def test_a_terminal_shows_every_cell_whole(width):
    names = [f"core/{at}" for at in range(6)]
    runs = [*_named("best-of-n", names, (0,)), *_named("ascend-optimizer:no-experience", names, (0,))]
    printed = io.StringIO()
    terminal = Console(file=printed, width=width, force_terminal=True, color_system=None)
    for table in Comparison(runs).tables([1]):
        print_table(terminal, table)
        for cell in {cell for cells in (table.columns, *table.rows) for cell in cells}:
            assert cell in printed.getvalue()
    assert max(map(len, printed.getvalue().splitlines())) <= width


def test_without_a_finished_run_there_is_a_sentence_and_no_table():
    compared = {("910B2", 4): Comparison([Run("best-of-n", "core/a", 0, None)])}
    assert summary_tables(compared) == []
    assert summary_notes(compared) == ["No run is finished yet, so there is nothing to compare."]


def test_two_methods_that_share_a_run_are_compared_whatever_stands_between_them():
    runs = [*_named("best-of-n", ("core/a",), (0,)), *_named("greedy-rules", ("core/b",), (0,))]
    comparison = Comparison([*runs, *_named("iterate", ("core/a",), (0,))])
    assert (comparison.methods, comparison.operators) == (["best-of-n", "iterate"], ["core/a"])
    assert comparison.others == {"greedy-rules": 1}
    assert Comparison(runs).methods == ["best-of-n"], "of equals, the default reference"
    assert Comparison(runs, "greedy-rules").methods == ["greedy-rules"]


def test_a_method_that_its_budgets_keep_from_comparison_is_said_to_be():
    runs = [*_named("best-of-n (budget 4)", ("core/a",), (0,)), *_named("iterate (budget 4)", FOUR, (0,))]
    assert not any("different budgets" in said for said in Comparison(runs).notes())
    split = [*runs, *_named("best-of-n (budget 8)", ("core/e",), (0,))]
    assert any("different budgets" in said for said in Comparison(split).notes())
