"""The command line: searches, their folders, their ends, and going on with them."""

import json
import shlex
import signal

import pytest

from ascend_gym.cli.sweep_plan import unused_settings
from ascend_gym.core.errors import DaemonUnreachableError, MisuseError
from ascend_gym.core.protocols import Completion
from ascend_gym.core.status import Status
from ascend_gym.sweep.plan import read_plan

TOY = ("toy", "--op-dir", "toy")
FASTER = "// 更快 🚀\n// latency: 50\n"


class ScriptedModel:
    """Answers with kernels in turn."""

    def __init__(self, *kernels):
        self.kernels = list(kernels)
        self.asked = 0
        self.tokens = 1

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        kernel = self.kernels[self.asked % len(self.kernels)]
        self.asked += 1
        text = f"### FILE: op_kernel/toy.cpp\n```cpp\n{kernel}```\n"
        return Completion(text=text, prompt_tokens=1, completion_tokens=self.tokens, model="scripted")


@pytest.fixture
def model(monkeypatch):
    scripted = ScriptedModel("// status: build_error\n", FASTER, "// latency: 80\n")
    monkeypatch.setattr("ascend_gym.cli.models.model_named", lambda name, **_: scripted)
    return scripted


def test_optimize_json_and_folder(run, evaluator, model, tmp_path):
    status, out, err = run("optimize", *TOY, "--budget", 3, "--seed", 5, "--json", "--in-flight", 1)
    summary = json.loads(out)
    folder = tmp_path / "runs" / "toy-best-of-n-seed5"
    assert status == 0
    assert summary["operator"] == "local/toy"
    assert (summary["method"], summary["budget"], summary["seed"]) == ("best-of-n", 3, 5)
    assert summary["evaluations"] == 3
    assert summary["baseline_latency_us"] == pytest.approx(100.0)
    assert summary["best_latency_us"] == pytest.approx(50.0)
    assert summary["speedup"] == pytest.approx(2.0)
    assert summary["statuses"] == {"ok": 2, "build_error": 1}
    assert (folder / "best/op_kernel/toy.cpp").read_text("utf-8") == FASTER
    assert (folder / "best/op_host/toy.cpp").read_text("utf-8") == "// tiling\n"
    assert "+// 更快 🚀" in (folder / "best.diff").read_text("utf-8")
    assert json.loads((folder / "summary.json").read_text("utf-8")) == summary
    assert summary["journal"] == "runs/toy-best-of-n-seed5/journal.jsonl"
    assert (folder / "journal.jsonl").stat().st_size > 0
    assert "new best" in err


def test_optimize_for_people(run, evaluator, model):
    status, out, err = run("optimize", *TOY, "--budget", 3)
    lines = [line.split() for line in out.splitlines()]
    assert status == 0
    assert ["baseline", "ok", "100.00", "us"] in lines
    assert ["2", "ok", "50.00", "us", "new", "best"] in lines
    assert ["speedup", "2.000x"] in lines
    assert ["journal", "runs/toy-best-of-n-seed0/journal.jsonl"] in lines
    assert "+// latency: 50" in out
    assert "build_error" in out
    assert "[run_kernel]" in out
    assert err == "building the simulator\n"


def test_optimize_twice_keeps_both_runs_and_their_results_agree(run, evaluator, model):
    first = json.loads(run("optimize", *TOY, "--budget", 3, "--json")[1])
    model.asked = 0
    second = json.loads(run("optimize", *TOY, "--budget", 3, "--json")[1])
    assert second["journal"] == "runs/toy-best-of-n-seed0-2/journal.jsonl"
    where = ("journal", "best_files")
    assert {k: v for k, v in first.items() if k not in where} == {
        k: v for k, v in second.items() if k not in where
    }


def test_optimize_refuses_a_folder_in_use(run, evaluator, model, tmp_path):
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "journal.jsonl").write_text("precious")
    status, out, err = run("optimize", *TOY, "--out", "used")
    assert (status, out) == (2, "")
    assert "used is not empty" in err
    assert (tmp_path / "used" / "journal.jsonl").read_text() == "precious"


@pytest.mark.parametrize("out", ["file/below", "x" * 300])
def test_optimize_refuses_a_folder_that_cannot_be_made(run, evaluator, model, tmp_path, out):
    (tmp_path / "file").write_text("precious")
    status, printed, err = run("optimize", *TOY, "--out", out, "--json")
    assert (status, json.loads(printed)["status"]) == (2, "invalid_request")
    assert "--out" in err
    assert (tmp_path / "file").read_text() == "precious"
    assert evaluator.requests == []


def test_optimize_without_a_folder_for_runs_says_so(run, evaluator, model, tmp_path):
    (tmp_path / "runs").write_text("a file")
    status, out, err = run("optimize", *TOY)
    assert (status, out) == (2, "")
    assert "--out" in err


def test_optimize_takes_a_new_folder(run, evaluator, model, tmp_path):
    status, out, _ = run("optimize", *TOY, "--budget", 1, "--out", "deep/new", "--json")
    assert (status, json.loads(out)["journal"]) == (0, "deep/new/journal.jsonl")


def test_optimize_with_a_broken_baseline_is_misuse(run, evaluator, model, toy_folder):
    (toy_folder / "op_kernel" / "toy.cpp").write_text("// status: incorrect\n")
    status, out, err = run("optimize", *TOY, "--json")
    assert status == 2
    assert json.loads(out)["stop_reason"] == "baseline_failed"
    assert "local/toy: the baseline ended as incorrect" in err


def test_optimize_without_infrastructure_exits_3_with_what_was_found(run, evaluator, model):
    evaluator.statuses = dict.fromkeys(range(2, 99), Status.INFRA_ERROR)
    model.kernels += [f"// latency: {us}\n" for us in range(200, 220)]
    status, out, err = run("optimize", *TOY, "--json", "--in-flight", 1)
    assert status == 3
    assert json.loads(out)["evaluations"] == 1
    assert "in a row failed" in err
    assert "to continue: ascend-gym resume runs/toy-best-of-n-seed0" in err


def test_a_command_to_go_on_with_can_be_pasted_whatever_its_folder_is_called(run, evaluator, model):
    evaluator.statuses = dict.fromkeys(range(2, 99), Status.INFRA_ERROR)
    model.kernels += [f"// latency: {us}\n" for us in range(200, 220)]
    status, _, err = run("optimize", *TOY, "--in-flight", 1, "--budget", 9, "--out", "my runs/it's")
    assert status == 3
    evaluator.statuses, model.asked = {}, 0
    command, *words = shlex.split(err.split("to continue: ")[1])
    assert (command, words) == ("ascend-gym", ["resume", "my runs/it's"])
    assert run(*words)[0] == 0


def test_optimize_interrupted_saves_and_prints_what_was_found(run, evaluator, model, monkeypatch, tmp_path):
    poll = evaluator.poll

    def poll_until_interrupted(timeout_s):
        if len(evaluator.requests) > 3:
            signal.raise_signal(signal.SIGINT)
        return poll(timeout_s)

    monkeypatch.setattr(evaluator, "poll", poll_until_interrupted)
    status, out, err = run("optimize", *TOY, "--json", "--in-flight", 1, "--out", "run")
    summary = json.loads(out)
    assert status == 130
    assert "to continue: ascend-gym resume run" in err
    assert (summary["stop_reason"], summary["evaluations"]) == ("interrupted", 2)
    assert (tmp_path / "run/best/op_kernel/toy.cpp").read_text("utf-8") == FASTER
    assert json.loads((tmp_path / "run/summary.json").read_text("utf-8")) == summary

    monkeypatch.setattr(evaluator, "poll", poll)
    status, out, _ = run("resume", "run", "--json", "--in-flight", 1)
    assert (status, json.loads(out)["stop_reason"]) == (0, "budget_spent")
    model.asked = 0
    assert run("optimize", *TOY, "--json", "--out", "unbroken")[0] == 0
    journals = [(tmp_path / name / "journal.jsonl").read_bytes() for name in ("run", "unbroken")]
    assert journals[0] == journals[1]


def test_optimize_interrupted_before_it_begins_says_that_nothing_was_saved(
    run, evaluator, monkeypatch, tmp_path
):
    monkeypatch.setattr("ascend_gym.cli.optimize.run_in_folder", lambda *_, **__: signal.raise_signal(2))
    status, _, err = run("optimize", *TOY, "--out", "run")
    assert status == 130
    assert "interrupted before the first evaluation; nothing was saved" in err
    assert not (tmp_path / "run").exists()


def test_a_paid_run_is_recorded_and_can_be_run_again_for_free(run, evaluator, model, tmp_path):
    paid = (*TOY, "--model", "dear", "--tokens", 10**6, "--usd", 1, "--price", "5,10", "--budget", 3)
    status, out, _ = run("optimize", *paid, "--json", "--cassette", "answers", "--out", "paid")
    spent = json.loads(out)["spent"]
    assert (status, spent["tokens"], spent["usd"]) == (0, 6, pytest.approx(45e-6))
    status, out, _ = run("optimize", *paid, "--json", "--cassette", "answers", "--replay", "--out", "free")
    assert (status, model.asked, json.loads(out)["spent"]["usd"]) == (0, 3, 0.0)
    journals = [(tmp_path / name / "journal.jsonl").read_bytes() for name in ("paid", "free")]
    assert journals[0] == journals[1]
    (tmp_path / "paid" / "journal.jsonl").unlink()
    status, out, _ = run("resume", "paid", "--json")
    assert (status, model.asked, json.loads(out)["spent"]) == (0, 3, spent)


def test_the_model_of_this_process_costs_no_money(run, evaluator, model):
    _, out, _ = run("optimize", *TOY, "--json", "--budget", 3, "--usd", 1, "--price", "5,10")
    assert (json.loads(out)["spent"]["tokens"], json.loads(out)["spent"]["usd"]) == (6, 0.0)
    assert run("optimize", *TOY, "--budget", 1, "--usd", 1)[0] == 0


def test_a_budget_of_tokens_ends_the_search_before_it_is_overshot(run, evaluator, model):
    model.tokens = 2000
    status, out, _ = run("optimize", *TOY, "--json", "--model", "dear", "--tokens", 30_000)
    summary = json.loads(out)
    assert (status, summary["stop_reason"]) == (0, "budget_spent")
    assert 0 < summary["evaluations"] < 20
    assert summary["spent"]["tokens"] <= 30_000
    assert "tokens asked for" in summary["message"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--replay",), "--cassette"),
        (("--usd", "1", "--model", "dear"), "--price IN,OUT"),
        (("--price", "cheap"), "expected a price"),
        (("--usd", "nan", "--price", "1,2"), "--usd nan: Input should be"),
        (("--device-seconds", "inf"), "--device-seconds inf: Input should be a finite number"),
        (("--tokens", "-1"), "--tokens -1: Input should be greater than or equal to 0"),
        (("--temperature", "nan"), "--temperature nan: Input should be"),
        (("--temperature", "-0.5"), "--temperature -0.5: Input should be"),
        (("--chip", "910Z"), "910B2"),
        (("--method", "ascend-optimizer", "--bank", "no.jsonl"), "no.jsonl"),
    ],
)
def test_runs_that_cannot_begin_say_what_they_need_and_leave_no_folder(
    run, evaluator, model, tmp_path, options, complaint
):
    status, out, err = run("optimize", *TOY, *options, "--out", "run", "--json")
    assert status == 2
    assert json.loads(out) == {
        "status": "invalid_request",
        "message": err.split("ascend-gym: ")[1].rstrip("\n"),
    }
    assert complaint in err
    assert not (tmp_path / "run").exists()
    assert evaluator.requests == []


def test_a_run_whose_daemon_was_never_there_leaves_no_folder(run, evaluator, model, tmp_path, monkeypatch):
    def connect(address, *, options):
        raise DaemonUnreachableError("no daemon answers")

    monkeypatch.setattr("ascend_gym.client.connect", connect)
    assert run("optimize", *TOY, "--out", "run")[0] == 3
    assert not (tmp_path / "run").exists()


def test_misuse_in_the_middle_of_a_run_leaves_what_there_is(run, evaluator, model, tmp_path, monkeypatch):
    def misused(self, messages, **_):
        raise MisuseError("no such thing")

    monkeypatch.setattr(ScriptedModel, "complete", misused)
    status, _, err = run("optimize", *TOY, "--out", "run")
    assert (status, "no such thing" in err) == (2, True)
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "run" / "journal.jsonl").open()]
    assert kinds == ["header", "proposal", "result"]


def test_an_outcome_that_cannot_be_written_exits_3_and_can_be_had_later(
    run, evaluator, model, tmp_path, monkeypatch
):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("ascend_gym.report.run_folder.write_candidate", full)
        status, out, err = run("optimize", *TOY, "--budget", 3, "--out", "run", "--json")
    assert (status, json.loads(out)["status"]) == (3, "infra_error")
    assert "No space left on device; to do it again: ascend-gym resume run" in " ".join(err.split())
    asked = len(evaluator.requests)
    model.asked = 0
    status, out, _ = run("resume", "run", "--json")
    assert (status, json.loads(out)["evaluations"], len(evaluator.requests)) == (0, 3, asked)


def test_settings_are_written_whole_or_not_at_all(run, evaluator, model, tmp_path, monkeypatch):
    def killed(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", killed)
    assert run("optimize", *TOY, "--out", "run")[0] == 130
    assert not (tmp_path / "run" / "run.json").exists()
    assert run("resume", "run")[0] == 2


def test_a_folder_that_holds_no_run_cannot_be_resumed(run, tmp_path):
    (tmp_path / "empty").mkdir()
    status, _, err = run("resume", "empty")
    assert status == 2
    assert "not the folder of a run" in err


@pytest.mark.parametrize("options", [("--price", "a,b", "--usd", 1), ("--model", "none")])
def test_models_that_cannot_be_had_are_told_before_an_evaluator_is_opened(
    run, evaluator, monkeypatch, options
):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    status, _, err = run("optimize", *TOY, *options)
    assert status == 2
    assert len(err.splitlines()) == 1
    assert evaluator.addresses == []
    assert evaluator.toolchains == []


def test_the_offline_model_says_with_which_method_it_writes_operators(run, evaluator):
    status, out, err = run("optimize", "generate/softmax", "--budget", 2)
    assert status == 0
    assert "generate/softmax has no sources: the offline model writes operators only with" in err
    assert "--method ascend-craft" in err
    assert ["result", "no", "correct", "candidate"] in [line.split() for line in out.splitlines()]


def test_a_long_diff_is_cut_and_its_rest_is_said_to_be_in_the_file(run, evaluator, model, tmp_path):
    model.kernels = [f"{FASTER}{'int x;' * 2}\n{'// more' * 3}\n" + "// line\n" * 300]
    status, out, _ = run("optimize", *TOY, "--budget", 1, "--out", "long")
    diff = (tmp_path / "long" / "best.diff").read_text("utf-8").splitlines()
    assert (status, sum(line == "+// line" for line in diff)) == (0, 300)
    assert f"... {len(diff) - 120} more lines in long/best.diff" in out.splitlines()
    assert sum(line in diff for line in out.splitlines()) == 120


def test_options_that_the_method_does_not_use_are_said_in_one_line(run, evaluator, model):
    ignored = ("--tiling-steps", 3, "--no-leave-one-out", "--tools")
    status, _, err = run("optimize", *TOY, "--budget", 1, *ignored)
    assert status == 0
    assert "ascend-gym: best-of-n does not use --tiling-steps, --leave-one-out, --tools\n" in err
    assert "does not use" not in run("optimize", *TOY, "--budget", 1, "--examples", "none")[2]
    plan = read_plan(None, methods=["best-of-n:top_k=2", "ascend-optimizer:top_k=2"])
    assert unused_settings(plan) == ["best-of-n does not use --top-k"]
