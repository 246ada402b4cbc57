"""Paired comparisons and the leaderboard, on stored runs."""

import itertools
import json
import math

import pytest
from conftest import FakeEvaluator
from hypothesis import given
from hypothesis import strategies as st
from stored_runs import SPEC, search
from typer.testing import CliRunner

from ascend_gym.cli import app as cli
from ascend_gym.cli.sweep_plan import jobs_of
from ascend_gym.core.errors import MisuseError
from ascend_gym.report.comparison import Comparison
from ascend_gym.report.leaderboard import leaderboard, leaderboard_table, paired_comparison
from ascend_gym.report.metrics import paired_test
from ascend_gym.report.page.results import read_results
from ascend_gym.report.stored_runs import comparison_runs, method_names
from ascend_gym.report.sweep_summary import comparisons, summary_document
from ascend_gym.sweep.merge import import_runs
from ascend_gym.sweep.plan import read_plan
from ascend_gym.sweep.store import ResultsStore

METHODS = ("greedy-rules", "best-of-n")
speedups = st.lists(st.floats(0.5, 4.0), min_size=1, max_size=9)


@given(speedups)
def test_the_exact_test_counts_flips(values):
    """Against 1, the p-value is the share of sign patterns whose mean is as far from 0."""
    table = [[value] for value in values]
    logs = [math.log(value) for value in values]
    means = [abs(sum(s * x for s, x in zip(signs, logs, strict=True))) for signs in _signs(len(logs))]
    share = sum(mean >= means[0] * (1 - 1e-9) for mean in means) / len(means)
    assert paired_test(table, [[1.0]] * len(values)).p_value == pytest.approx(share)


def _signs(count):
    return list(itertools.product((1, -1), repeat=count))


def test_many_operators_that_are_all_faster_are_significant_and_noise_is_not():
    ones = [[1.0]] * 40
    assert paired_test([[1.1]] * 40, ones).p_value < 1e-3
    mixed = [[1.1] if number % 2 else [1 / 1.1] for number in range(40)]
    assert paired_test(mixed, ones).p_value > 0.5
    assert paired_test(ones, ones).p_value == 1.0


@pytest.fixture
def store(tmp_path):
    """Three runs of best-of-n that reach 2x and two of greedy-rules that reach 2.5x."""
    for seed in range(3):
        search(tmp_path / f"bon{seed}", seed=seed, budget=4)
    for seed in range(2):
        search(tmp_path / f"greedy{seed}", "// latency: 40\n", method="greedy-rules", seed=seed, budget=4)
    folders = [path for path in sorted(tmp_path.iterdir()) if path.is_dir()]
    with ResultsStore(tmp_path / "results.sqlite", write=True) as opened:
        import_runs(opened, folders, lambda folder: None)
        yield opened


def test_methods_are_compared_on_the_seeds_they_share(store):
    greedy = comparison_runs(store, store.runs(variant="greedy-rules"))
    bon = [run for run in comparison_runs(store, store.runs(variant="best-of-n")) if run.seed < 2]
    document = paired_comparison(greedy, bon, 4)
    assert document["ratio"]["value"] == pytest.approx(1.25)
    assert (document["faster"], document["equal"], document["slower"]) == (1, 0, 0)
    assert document["test"]["p_value"] == 1.0  # one operator shows nothing
    assert paired_comparison(bon, bon, 4)["equal"] == 1
    every = comparison_runs(store, store.runs(variant="best-of-n"))
    assert paired_comparison(greedy, every, 4)["seeds"] == [0, 1], "the third seed is one's alone"
    with pytest.raises(MisuseError, match="no operator in common"):
        paired_comparison(greedy, [run for run in every if run.seed == 2], 4)


class OtherSimulator(FakeEvaluator):
    def describe(self):
        return super().describe().model_copy(update={"toolchain_digest": "1"})


def test_runs_with_other_settings_or_another_simulator_are_of_other_methods(tmp_path):
    for seed in range(2):
        search(tmp_path / f"low{seed}", seed=seed, budget=4, reasoning_effort="low")
        search(tmp_path / f"high{seed}", seed=seed, budget=4, reasoning_effort="high", max_tokens=5)
        other = OtherSimulator()
        search(tmp_path / f"other{seed}", seed=seed, budget=4, reasoning_effort="low", evaluator=other)
    folders = [path for path in sorted(tmp_path.iterdir()) if path.is_dir()]
    path = tmp_path / "results.sqlite"
    with ResultsStore(path, write=True) as opened:
        import_runs(opened, folders, lambda folder: None)
        runs = opened.runs()
        board = leaderboard(opened, "toys", [SPEC.op_id])
        assert len(Comparison(comparison_runs(opened, runs)).methods) == 3
    names = {
        "best-of-n (max_tokens 5, reasoning_effort high, toolchain 0)",
        "best-of-n (max_tokens default, reasoning_effort low, toolchain 0)",
        "best-of-n (max_tokens default, reasoning_effort low, toolchain 1)",
    }
    assert {row["name"] for row in board["rows"]} == names == set(method_names(runs).values())
    assert [len(row["seeds"]) for row in board["rows"]] == [2, 2, 2]
    told = CliRunner().invoke(cli, ["compare", "best-of-n", "best-of-n", "--store", str(path)])
    assert told.exit_code == 2 or "different settings" in str(told.exception)
    one, other = sorted(names)[:2]
    compared = CliRunner().invoke(cli, ["compare", one, other, "--store", str(path), "--json"])
    assert json.loads(compared.stdout)["equal"] == 1, compared.output


def test_every_command_says_the_same_of_one_store(tmp_path):
    for seed in range(3):
        search(tmp_path / f"bon{seed}", f"// latency: {60 - seed}\n", seed=seed, budget=4)
        search(tmp_path / f"greedy{seed}", "// latency: 40\n", method="greedy-rules", seed=seed, budget=4)
    folders = [path for path in sorted(tmp_path.iterdir()) if path.is_dir()]
    with ResultsStore(tmp_path / "results.sqlite", write=True) as opened:
        import_runs(opened, reversed(folders), lambda folder: None)
        runs = opened.runs()
        board = leaderboard(opened, "toys", [SPEC.op_id])
        ((sweep,),) = [summary_document(comparisons(opened, each)) for each in (runs,)]
        page = read_results(opened, runs[::-1]).main.as_json([4])
        greedy, bon = (comparison_runs(opened, opened.runs(variant=name)) for name in METHODS)
        pair = paired_comparison(greedy, bon, 4)
    by_command = [
        {row["method"]: row["geometric_mean"] for row in board["rows"]},
        {row["method"]: row["geometric_mean"] for row in sweep["budgets"]["4"]},
        {row["method"]: row["geometric_mean"] for row in page["budgets"]["4"]},
        dict(zip(METHODS, pair["geometric_mean"], strict=True)),
    ]
    assert by_command == [by_command[0]] * 4
    ratios = [next(row["relative"] for row in each["budgets"]["4"] if row["test"]) for each in (sweep, page)]
    assert [*ratios, pair["ratio"]] == [ratios[0]] * 3


def test_the_leaderboard_ranks_methods_and_tells_how_to_repeat_them(store):
    board = leaderboard(store, "toys", [SPEC.op_id])
    assert [row["method"] for row in board["rows"]] == ["greedy-rules", "best-of-n"]
    best, second = board["rows"]
    assert best["geometric_mean"]["value"] == pytest.approx(2.5)
    assert (second["seeds"], second["complete"], second["costs"]["evaluations"]) == ([0, 1, 2], True, 12)
    assert second["costs"]["usd"] == pytest.approx(12 * 2000 / 1e6)
    assert best["command"] == (
        "ascend-gym sweep --op toys --method greedy-rules --seed 0 --seed 1 --budget 4 --chip 910B2 "
        "--model paid --price 1,2"
    )
    table = leaderboard_table(board)
    assert [row[0] for row in table.rows] == ["greedy-rules", "best-of-n"]
    assert table.rows[0][4:7] == ("1/1", "2", "2.500 [-]"), "one operator gives no interval"
    assert leaderboard(store, "toys", [SPEC.op_id, "core/other"])["rows"][0]["complete"] is False
    assert leaderboard(store, "toys", ["core/other"])["rows"] == []


def test_runs_that_differ_in_a_setting_are_rows_of_their_own(tmp_path):
    for name, settings in (
        ("one", {}),
        ("other", {"reasoning_effort": "high"}),
        ("long", {"max_tokens": 99}),
    ):
        search(tmp_path / name, seed=0, budget=4, **settings)
    with ResultsStore(tmp_path / "results.sqlite", write=True) as opened:
        import_runs(opened, sorted(tmp_path.glob("*/")), lambda folder: None)
        rows = leaderboard(opened, "toys", [SPEC.op_id])["rows"]
    commands = sorted(row["command"] for row in rows)
    assert len(commands) == 3
    assert sum("--reasoning-effort high" in each for each in commands) == 1
    assert sum("--max-tokens 99" in each for each in commands) == 1


def test_a_leaderboard_command_makes_runs_of_the_same_settings():
    plan = read_plan(None, operators=["core/add"], methods=["best-of-n"], seeds=[3], budgets=[4], tokens=9)
    (job,) = jobs_of(plan)
    settings = json.loads(job.settings)
    assert (settings["seed"], settings["budget"], settings["tokens"]) == (3, 4, 9)


def test_the_commands(store, tmp_path, run):
    path = store.path
    status, out, _ = run("compare", "greedy-rules", "greedy-rules", "--store", path)
    assert (status, "0 faster, 1 equal, 0 slower" in out) == (0, True)
    status, out, _ = run("compare", "greedy-rules", "greedy-rules", "--store", path, "--json")
    assert json.loads(out)["operators"][0]["operator"] == SPEC.op_id
    status, _, said = run("compare", "magic", "best-of-n", "--store", path)
    assert (status, "methods with runs: best-of-n, greedy-rules" in said) == (2, True)
    status, out, _ = run("leaderboard", "--store", path)
    assert (status, "Suite core, 95 % intervals" in out) == (0, True)
    status, out, _ = run("leaderboard", "--store", path, "--json")
    assert (status, json.loads(out)["rows"]) == (0, [])  # the toy is of no suite
