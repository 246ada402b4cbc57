"""The sweep command: plans, budgets that are equal, estimates, and sweeps that go on."""

import io
import json
import shlex
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from openai_faults import faulty_server, log_of
from rich.console import Console
from stored_runs import search
from sweeping import CHILD, make_job

from ascend_gym.cli import sweep
from ascend_gym.cli.methods import RunSettings
from ascend_gym.cli.runs import operator_of
from ascend_gym.cli.sweep_plan import as_written_now, jobs_of, kept_plan
from ascend_gym.core.errors import MisuseError
from ascend_gym.report.sweep_view import SweepView
from ascend_gym.suite.loader import list_operators
from ascend_gym.sweep import plan as plan_module
from ascend_gym.sweep.executors import LocalExecutor
from ascend_gym.sweep.jobs import RunEnd, RunEnding, RunStep, Update
from ascend_gym.sweep.plan import matching_operators, read_plan
from ascend_gym.sweep.run_folders import RunFolders
from ascend_gym.sweep.sweep_state import DaemonSlots, SweepLoop, SweepState

PLAN = """
operators = ["core/a?d", "core/gelu"]
methods = ["best-of-n", "ascend-optimizer:no-experience"]
seeds = [0, 1]
budgets = [5, 10]

[limits]
tokens = 1000
"""


def test_a_plan_is_the_product_of_its_lists(tmp_path):
    (tmp_path / "sweep.toml").write_text(PLAN)
    plan = read_plan(tmp_path / "sweep.toml", seeds=[7], usd=2.0, model=None)
    jobs = jobs_of(plan)
    assert len(jobs) == 2 * 2 * 1 * 2 == len({job.job_id for job in jobs})
    assert {(job.variant, job.operator, job.budget) for job in jobs} == {
        (variant, operator, budget)
        for variant in ("best-of-n", "ascend-optimizer:no-experience")
        for operator in ("core/add", "core/gelu")
        for budget in (5, 10)
    }
    settings = [json.loads(job.settings) for job in jobs]
    assert {(each["tokens"], each["usd"], each["seed"]) for each in settings} == {(1000, 2.0, 7)}


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ({"methods": ["magic"]}, "no method 'magic'"),
        ({"methods": ["best-of-n"], "operators": ["core/z*"]}, "no operator fits 'core/z\\*'"),
        ({"methods": ["best-of-n"], "operators": ["core/nothing"]}, "no operator 'core/nothing'"),
        ({"methods": ["best-of-n:tokens=9"]}, "budget of its own"),
        ({"methods": ["best-of-n:duplicates=free"]}, "budget of its own"),
        ({"operators": ["core"]}, "methods: Field required"),
        ({"methods": ["best-of-n"], "budgets": [0]}, "at least 1 evaluation, got 0"),
    ],
)
def test_plans_that_make_no_sense_are_refused(flags, reason):
    with pytest.raises(MisuseError, match=reason):
        jobs_of(read_plan(None, **flags))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("budgest = [3]", "budgest: unknown key, did you mean 'budgets'\\?; known are op_dirs, operators, "),
        (
            "[limits]\ntokns = 3",
            "limits.tokns: unknown key, did you mean 'tokens'\\?; known are device_seconds",
        ),
        ("limits = 3", "limits: expected a table \\[limits\\], got 3"),
        ("operators = []", "expected at least one operator"),
        ('chips = ["910B9"]', "no chip is named '910B9'"),
    ],
)
def test_what_is_wrong_in_a_file_is_told(tmp_path, text, reason):
    (tmp_path / "sweep.toml").write_text(f'methods = ["best-of-n"]\n{text}\n')
    with pytest.raises(MisuseError, match=reason):
        read_plan(tmp_path / "sweep.toml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('method = ["best-of-n"]', "method: unknown key, did you mean 'methods'?; known are op_dirs"),
        ('operators = ["add"]', "methods: Field required"),
    ],
    ids=["misspelt", "missing"],
)
def test_a_plan_without_methods_is_told_what_it_lacks(tmp_path, text, told):
    (tmp_path / "sweep.toml").write_text(f"{text}\n")
    with pytest.raises(MisuseError) as refused:
        read_plan(tmp_path / "sweep.toml")
    reason = str(refused.value).removeprefix(f"{tmp_path / 'sweep.toml'}: ")
    assert reason.startswith(told)
    assert "{" not in reason, "no word about what else stands in the plan"


def test_operators_of_ones_own_are_swept(tmp_path, toy_folder):
    plan = read_plan(None, methods=["best-of-n"], op_dirs=[str(toy_folder)])
    (job,) = jobs_of(plan)
    settings = json.loads(job.settings)
    assert (job.operator, settings["op_dir"]) == ("local/toy", str(toy_folder))
    assert operator_of(RunSettings.model_validate_json(job.settings)).folder == str(toy_folder)
    both = read_plan(None, methods=["best-of-n"], op_dirs=[str(toy_folder)], operators=["add"])
    assert [job.operator for job in jobs_of(both)] == ["core/add", "local/toy"]
    assert len(jobs_of(read_plan(None, methods=["best-of-n"]))) == len(list_operators("core"))
    other = tmp_path / "elsewhere" / "toy"
    shutil.copytree(toy_folder, other)
    with pytest.raises(MisuseError, match="two operators are called local/toy"):
        jobs_of(read_plan(None, methods=["best-of-n"], op_dirs=[str(toy_folder), str(other)]))


def test_a_sweep_takes_the_folder_of_an_operator(run, toy_folder):
    options = ("--method", "best-of-n", "--op-dir", toy_folder, "--budget", 3, "--dry-run")
    status, out, _ = run("sweep", *options)
    assert (status, "1 runs, 3 evaluations" in out) == (0, True)


def test_patterns_fit_ids_and_bare_names_and_no_operator_comes_twice():
    assert matching_operators(["core/a?d", "add", "ad?"]) == ["core/add"]
    assert len(matching_operators(["core"])) == len(set(matching_operators(["core", "core/*"])))


def test_a_folder_holds_one_sweep(tmp_path):
    plan = read_plan(None, methods=["best-of-n"])
    assert kept_plan(tmp_path, plan, resume=False) == plan
    assert kept_plan(tmp_path, None, resume=True) == kept_plan(tmp_path, plan, resume=True) == plan
    with pytest.raises(MisuseError, match="resume it with --resume"):
        kept_plan(tmp_path, plan, resume=False)
    with pytest.raises(
        MisuseError, match=r"another plan \(methods: it has \['best-of-n'\], given were \['gr"
    ):
        kept_plan(tmp_path, read_plan(None, methods=["greedy-rules"]), resume=True)
    with pytest.raises(MisuseError, match="tokens: it has None, given were 5"):
        kept_plan(tmp_path, read_plan(None, methods=["best-of-n"], tokens=5), resume=True)
    with pytest.raises(MisuseError, match="holds no sweep to resume"):
        kept_plan(tmp_path / "none", None, resume=True)


def test_a_dry_run_estimates_from_earlier_runs(tmp_path, run):
    wanted = ["sweep", "--method", "best-of-n", "--op", "core/add", "--budget", 8, "--dry-run"]
    status, out, _ = run(*wanted)
    assert (
        status,
        "1 runs, 8 evaluations, 1 baselines" in out,
        "hours, tokens and money unknown" in out,
    ) == (*(0, True, True),)
    assert "every run of every method: 8 evaluations; duplicates charged" in out
    search(tmp_path / "runs" / "old")
    run("runs", "import", tmp_path / "runs")
    told = json.loads(run(*wanted, "--estimate-from", "runs/results.sqlite", "--json")[1])
    assert (told["tokens"], told["measured_evaluations"], told["hours"]) == (8 * 1500, 4, 0.0)
    priced = ("--price", "10,100", "--estimate-from", "runs/results.sqlite", "--json")
    told = json.loads(run(*wanted, *priced)[1])
    assert told["usd"] == pytest.approx(8 * (1000 * 10 + 500 * 100) / 1e6)
    assert not (tmp_path / "runs" / "sweep").exists()


def test_the_plan_of_the_protocol_for_models_is_what_its_page_says():
    """docs/models_protocol.md: eight operators, four methods, three seeds, equal limits."""
    root = Path(__file__).parents[2]
    plan = read_plan(root / "benchmarks" / "methods" / "model_comparison.toml", model="m")
    page = (root / "docs" / "models_protocol.md").read_text("utf-8")
    assert len(jobs_of(plan)) == 8 * 4 * 3
    assert all(f"`{method}`" in page for method in plan.methods)
    assert f"| {', '.join(plan.operators)} of suite `core` |" in page
    assert f"at most {plan.limits.tokens:,} tokens a run" in page


def test_a_suite_that_is_not_imported_is_refused_with_what_to_do(run, monkeypatch, tmp_path):
    monkeypatch.setattr(plan_module, "list_operators", lambda suite: [])
    status, _, said = run("sweep", "--method", "best-of-n", "--op", "cann-ops-101", "--dry-run")
    assert (status, "import a checkout with 'ascend-gym suite import --cann-ops DIR'" in said) == (2, True)


@pytest.fixture
def fake_hosts(monkeypatch):
    """Make runs by the scripted child, without daemons."""

    @contextmanager
    def opened(hosts, chips):
        executor = LocalExecutor(2)
        try:
            yield [DaemonSlots("ipc://nobody", chips[0], 2)], executor
        finally:
            executor.close()

    def sweep_loop(state, executor, folders, listeners, ended, arguments):
        return SweepLoop(state, executor, folders, listeners, ended, (), CHILD)

    monkeypatch.setattr(sweep, "opened_hosts", opened)
    monkeypatch.setattr(sweep, "SweepLoop", sweep_loop)


def test_a_sweep_is_made_stored_and_compared_and_resumed_without_work(tmp_path, run, fake_hosts):
    wanted = ["sweep", "--method", "best-of-n", "--op", "core/add", "--seed", 0, "--seed", 1, "--budget", 10]
    status, out, said = run(*wanted, "--out", "s", "--json")
    assert status == 0
    document = json.loads(out)
    assert document["endings"] == {"finished": 2}
    assert document["spent_evaluations"] == 8
    assert "[2/2] best-of-n on core/add" in said
    assert "every run of every method: 10 evaluations" in said
    assert {path.name for path in (tmp_path / "s").iterdir()} >= {
        *("results.sqlite", "table.md", "results.json", "events.jsonl", "sweep.json", "best-of-n"),
    }
    events = [json.loads(line) for line in (tmp_path / "s" / "events.jsonl").read_text().splitlines()]
    assert sum("index" in event for event in events) == 10
    status, _, said = run(*wanted, "--out", "s")
    assert (status, "resume it with --resume" in said) == (2, True)
    status, out, said = run("sweep", "--resume", "--out", "s", "--json", "--quiet")
    assert (status, "2 of 2 runs have ended\n" in said, json.loads(out)) == (0, True, document)


def test_a_resumed_sweep_tells_what_is_recorded_of_runs_that_have_not_ended(tmp_path, run, fake_hosts):
    wanted = ["sweep", "--method", "best-of-n", "--op", "core/add", "--seed", 0, "--seed", 1, "--budget", 10]
    assert run(*wanted, "--out", "s")[0] == 0
    journal = next((tmp_path / "s").rglob("journal.jsonl"))
    lines = journal.read_text().splitlines(keepends=True)
    assert '"end"' in lines[-1]
    journal.write_text("".join(lines[:-1]))
    status, _, said = run("sweep", "--resume", "--out", "s", "--quiet")
    assert status == 0
    assert "1 of 2 runs have ended; recorded evaluations taken up: 4, of 1 unfinished\n" in said


def test_a_command_to_resume_a_sweep_can_be_pasted_whatever_its_folder_is_called(
    run, monkeypatch, fake_hosts
):
    def interrupted(hosts, chips):
        raise KeyboardInterrupt

    wanted = ("sweep", "--method", "best-of-n", "--op", "core/add", "--seed", 0, "--budget", 10)
    with monkeypatch.context() as patched:
        patched.setattr(sweep, "opened_hosts", interrupted)
        status, _, said = run(*wanted, "--out", "my sweeps/1")
    command, *words = shlex.split(said.split("to continue: ")[1])
    assert (status, command) == (130, "ascend-gym")
    assert words == ["sweep", "--resume", "--out", "my sweeps/1"]
    assert run(*words)[0] == 0


def test_progress_counts_and_tells_ends_with_their_reasons():
    state = SweepState.of([make_job(0), make_job(1)], [DaemonSlots(None)])
    console = Console(file=io.StringIO(), width=200)
    view = SweepView(console, state)
    for start in state.starts(0.0, 2):
        step = RunStep(1, "ok", 1, 100.0, 80.0)
        end = (
            RunEnd(RunEnding.FINISHED, "the baseline failed")
            if start.job.seed
            else RunEnd(RunEnding.LOST, "gone")
        )
        update = Update(start.job.job_id, start.attempt, "here", steps=(step, step), end=end)
        state.observe(update, 0.0)
        view.show(update)
    lines = console.file.getvalue().splitlines()
    assert lines[0].endswith("seed 0: lost: gone; it is tried again")
    assert lines[1].startswith("[1/2]")
    assert lines[1].endswith("1.250x with 1 evaluations; the baseline failed")
    assert [(host, runs) for host, runs, _ in view.progress.by_host()] == [("here", 0)]
    assert view.progress.remaining_s() > 0


def test_a_run_of_an_earlier_release_with_fewer_settings_goes_on(tmp_path):
    """Releases add settings; a run that was begun without them has their defaults."""
    (job,) = jobs_of(read_plan(None, operators=["add"], methods=["best-of-n"], seeds=[0], budgets=[5]))
    begun = json.loads(job.settings)
    del begun["embedder"]
    path = tmp_path / job.job_id / "run.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(begun))
    folders = RunFolders(tmp_path, as_written_now)
    folders.begin(job)
    path.write_text(json.dumps({**begun, "embedder": "minilm"}))
    with pytest.raises(MisuseError, match="holds a run of other settings"):
        folders.begin(job)


MODEL_SWEEP = (
    "sweep",
    "--method",
    "best-of-n",
    "--op",
    "core/add",
    "--budget",
    10,
    "--model",
    "m",
    "--quiet",
)


@pytest.mark.parametrize(
    ("fault", "status", "said"),
    [
        ("wrong_model", 3, "the endpoint has no such model: correct --model"),
        ("wrong_key", 3, "the endpoint does not accept the key: correct OPENAI_API_KEY"),
        ("no_quota", 3, "nothing is left to spend at the provider"),
        ("no_money", 3, "nothing is left to spend at the provider"),
    ],
)
def test_a_model_that_cannot_answer_ends_a_sweep_before_anything_is_evaluated(
    tmp_path, run, monkeypatch, fault, status, said
):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(sweep, "opened_hosts", None)  # a daemon would be asked for a baseline
    with faulty_server(fault) as base_url:
        ended, _, told = run(*MODEL_SWEEP, "--base-url", base_url, "--out", "s")
        assert (ended, said in told) == (status, True), told
        assert len(log_of(base_url)) == 1
    assert not list((tmp_path / "s").rglob("journal.jsonl"))


def test_a_sweep_may_not_spend_more_than_its_runs_have_together(tmp_path, run, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(sweep, "opened_hosts", None)
    with faulty_server("fine") as base_url:
        wanted = (*MODEL_SWEEP, "--base-url", base_url, "--out", "s")
        ended, _, told = run(*wanted, "--sweep-tokens", 10)
        assert (ended, "the sweep may spend 10 tokens on models in all" in told) == (3, True), told
        assert log_of(base_url) == []
        ended, _, told = run(*wanted, "--sweep-usd", 1)
        assert (ended, "--sweep-usd needs the price" in told) == (2, True), told


def test_one_refusal_for_good_ends_the_runs_that_have_not_begun(tmp_path):
    state = SweepState.of([make_job(seed) for seed in range(4)], [DaemonSlots(None, runs=2)])
    first, second = state.starts(0.0, 2)
    refused = RunEnd(RunEnding.MODEL_REFUSED, "the endpoint has no such model")
    state.observe(Update(first.job.job_id, 1, "here", end=refused), 0.0)
    assert [each.end for each in state.jobs.values()] == [refused, None, refused, refused]
    state.observe(Update(second.job.job_id, 1, "here", end=RunEnd(RunEnding.FINISHED)), 0.0)
    assert state.done
