"""The command line: evaluate, suite, and what it says of misuse."""

import errno
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ascend_gym
from ascend_gym.cli import app
from ascend_gym.core.errors import DaemonUnreachableError
from ascend_gym.core.status import Blame, Status, rule_of
from ascend_gym.core.toml_file import read_toml
from ascend_gym.suite.loader import load_operator

ROOT = Path(__file__).resolve().parents[2]

FASTER = "// 更快 🚀\n// latency: 50\n"


def _source(tmp_path, text):
    path = tmp_path / "candidate.cpp"
    path.write_text(text, "utf-8")
    return path


TOY = ("toy", "--op-dir", "toy")


def test_evaluate_json_is_one_document(run, evaluator, tmp_path):
    status, out, _ = run("evaluate", *TOY, "--kernel-file", _source(tmp_path, FASTER), "--json")
    summary = json.loads(out)
    assert status == 0
    assert summary["operator"] == "local/toy"
    assert (summary["status"], summary["correct"]) == ("ok", True)
    assert summary["latency_us"] == pytest.approx(50.0)
    assert summary["baseline_latency_us"] == pytest.approx(100.0)
    assert summary["speedup"] == pytest.approx(2.0)
    assert summary["profile"]["aiv_vec_ratio"] == 0.5
    assert {"build", "run", "price", "total"} <= set(summary["seconds"])
    assert [case["case_id"] for case in summary["cases"]] == ["small", "large"]
    assert [case["speedup"] for case in summary["cases"]] == [pytest.approx(2.0)] * 2
    assert summary["diagnostics"] == []
    assert {"cached", "device"} <= set(summary)
    assert evaluator.closed == 1


def test_evaluate_without_files_is_the_baseline_and_asks_once(run, evaluator):
    status, out, _ = run("evaluate", *TOY, "--daemon", "tcp://host:1", "--json")
    assert (status, json.loads(out)["speedup"]) == (0, 1.0)
    assert evaluator.addresses == [["tcp://host:1"]]
    assert evaluator.toolchains == []
    assert len(evaluator.requests) == 1
    assert evaluator.requests[0].op_folder.endswith("/toy")


def test_evaluate_one_case(run, evaluator):
    _, out, err = run("evaluate", *TOY, "--case", "small", "--json")
    assert evaluator.addresses == [()]
    assert evaluator.chips == ["910B2"]
    assert len(evaluator.toolchains) == 1
    assert err == "building the simulator\n"
    assert [case["case_id"] for case in json.loads(out)["cases"]] == ["small"]
    assert evaluator.requests[0].case_ids == ("small",)


def test_the_chips_of_another_daemon_are_its_own_business(run, evaluator):
    status, _, _ = run("evaluate", *TOY, "--daemon", "tcp://host:1", "--chip", "910B4")
    assert status == 0
    assert evaluator.requests[0].protocol.chip == "910B4"


def test_an_unknown_chip_is_misuse_before_anything_is_built(run, evaluator):
    status, out, _ = run("evaluate", *TOY, "--chip", "910Z", "--json")
    document = json.loads(out)
    assert (status, document["status"]) == (2, "invalid_request")
    assert "910B2" in document["message"]
    assert evaluator.toolchains == []


@pytest.mark.parametrize("address", ["garbage", "tcp://host", "gopher://x"])
def test_what_is_no_address_is_misuse(run, address):
    status, out, err = run("evaluate", *TOY, "--daemon", address, "--json")
    document = json.loads(out)
    assert (status, document["status"]) == (2, "invalid_request")
    assert address in document["message"]
    assert err == f"ascend-gym: {document['message']}\n"


@pytest.mark.parametrize("bad", [status for status in Status if status is not Status.OK])
def test_evaluate_exits_by_blame(run, evaluator, tmp_path, bad):
    status, out, _ = run(
        "evaluate", *TOY, "--tiling-file", _source(tmp_path, f"// status: {bad.value}"), "--json"
    )
    summary = json.loads(out)
    assert summary["status"] == bad.value
    assert not summary["correct"]
    assert summary["latency_us"] is None
    assert summary["speedup"] is None
    assert summary["profile"] is None
    assert "the toy ended as asked" in summary["diagnostics"][0]["message"]
    assert status == {Blame.CALLER: 2, Blame.INFRASTRUCTURE: 3}.get(rule_of(bad).blame, 0)


def test_evaluate_for_people(run, evaluator, tmp_path):
    status, out, _ = run("evaluate", *TOY, "--kernel-file", _source(tmp_path, FASTER))
    assert status == 0
    assert "50.00 us" in out
    assert "100.00 us" in out
    assert "2.000x" in out
    status, out, _ = run("evaluate", *TOY, "--kernel-file", _source(tmp_path, "// status: timeout"))
    assert "timeout" in out
    assert "[run_kernel] the toy ended as asked" in out


def test_an_unreachable_daemon_exits_3(run, monkeypatch):
    def connect(address, *, options):
        raise DaemonUnreachableError(f"no daemon answers at {address[0]}")

    monkeypatch.setattr("ascend_gym.client.connect", connect)
    status, out, err = run("evaluate", *TOY, "--daemon", "tcp://nowhere:1", "--json")
    message = "no daemon answers at tcp://nowhere:1"
    assert (status, json.loads(out)) == (3, {"status": "infra_error", "message": message})
    assert err == f"ascend-gym: {message}\n"
    assert run("evaluate", *TOY, "--daemon", "tcp://nowhere:1") == (3, "", err)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate", "no_such_operator"), "no operator 'no_such_operator'"),
        (("evaluate", *TOY, "--case", "huge"), "no case 'huge'; its cases are small, large"),
        (("evaluate", *TOY, "--kernel-file", "missing.cpp"), "does not exist"),
        (("evaluate", *TOY, "--kernel-file", "latin1.cpp"), "latin1.cpp is not UTF-8"),
        (("optimize", *TOY, "--budget", "0"), "--budget"),
        (("optimize", *TOY, "--method", "magic"), "--method"),
        (("suite", "list", "--suite", "none"), "no suite 'none'"),
        (("suite", "show", "toy"), "no operator 'toy'"),
        (("conquer",), "conquer"),
    ],
)
def test_misuse_exits_2_and_says_what_is_wrong(run, evaluator, tmp_path, arguments, message):
    (tmp_path / "latin1.cpp").write_bytes("é".encode("latin-1"))
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert message in " ".join(err.replace("│", " ").split())


def test_suite_list_names_the_operators(run):
    status, out, _ = run("suite", "list")
    assert status == 0
    assert {"core/add", "core/gelu", "core/softmax"} <= set(out.split())


def test_suite_list_selects_by_level_and_category(run):
    status, out, _ = run("suite", "list", "--level", 3, "--category", "indexing", "--json")
    listed = json.loads(out)["operators"]
    assert status == 0
    assert "core/gather" in {each["op_id"] for each in listed}
    assert {(each["level"], each["category"]) for each in listed} == {(3, "indexing")}
    assert all(each["floor_us"] > 0 and each["baseline_us"] is None for each in listed)
    status, _, err = run("suite", "list", "--category", "indeksing")
    assert status == 2
    assert "no operator of level any and category ['indeksing']" in err


def test_suite_list_measures_when_asked(run, evaluator):
    status, out, _ = run("suite", "list", "--category", "activation", "--measure", "--json")
    assert status == 0
    listed = json.loads(out)["operators"]
    assert len(listed) > 1
    assert all(each["baseline_us"] > 0 for each in listed)


def test_evaluate_check_shows_every_case_and_fails_when_one_is_wrong(run, evaluator, toy_folder):
    status, out, _ = run("evaluate", *TOY, "--check")
    assert (status, out.splitlines()) == (
        0,
        ["passed  local/toy, case small: 50.00 us", "passed  local/toy, case large: 200.00 us"],
    )
    (toy_folder / "op_kernel" / "toy.cpp").write_text("// status: runtime_fault\n")
    status, out, _ = run("evaluate", *TOY, "--check")
    assert status == 1
    assert [line for line in out.splitlines() if line.startswith("failed")] == [
        "failed  local/toy, case small",
        "failed  local/toy, case large",
    ]
    status, out, _ = run("evaluate", *TOY, "--check", "--json")
    assert (status, json.loads(out)["passed"]) == (1, False)


def test_suite_show_tells_cases_and_sources(run):
    status, out, _ = run("suite", "show", *TOY)
    assert status == 0
    assert "local/toy (Toy)" in out
    assert "Scales [a tensor]." in out
    assert "op_host/toy.cpp, op_kernel/toy.cpp" in out
    assert "scale=2.0" in out


def test_suite_new_prints_a_command_that_can_be_pasted(run, evaluator, tmp_path):
    (tmp_path / "my operators").mkdir()
    status, out, _ = run("suite", "new", "scale", "--dir", "my operators")
    command, *words = shlex.split(out.splitlines()[-1])
    assert (status, command) == (0, "ascend-gym")
    assert words == ["suite", "validate", "scale", "--op-dir", "my operators/scale"]


def test_suite_validate_reports_each_check(run, evaluator):
    status, out, err = run("suite", "validate", *TOY)
    assert (status, err) == (0, "building the simulator\n")
    assert out.splitlines() == [
        "passed  local/toy, audit of case small",
        "passed  local/toy, audit of case large",
        "passed  local/toy, baseline on case small: 50.00 us",
        "passed  local/toy, baseline on case large: 200.00 us",
        "passed  local/toy, repeated case small",
    ]


def test_suite_validate_names_tiling_keys_that_no_case_reaches(run, evaluator, toy_folder):
    kernel = toy_folder / "op_kernel" / "toy.cpp"
    kernel.write_text(kernel.read_text() + "// TILING_KEY_IS(0) TILING_KEY_IS( 70UL )\n")
    status, out, _ = run("suite", "validate", *TOY)
    assert status == 0
    assert "passed  local/toy, tiling keys: 0 of 2 reached; no case reaches 0, 70" in out.splitlines()


def test_suite_audit_reports_each_case(run, evaluator):
    status, out, _ = run("suite", "audit", "--no-coverage", *TOY)
    assert status == 0
    *cases, domain = out.splitlines()
    assert cases == ["passed  local/toy, case small", "passed  local/toy, case large"]
    assert domain.startswith(
        "passed  local/toy, domain (no domain is declared: values are drawn from the ranges"
    )
    assert evaluator.requests == []


@pytest.mark.parametrize("arguments", [[], ["gelu", "--all"]])
def test_suite_audit_wants_one_operator_or_all(run, arguments):
    status, _, err = run("suite", "audit", *arguments)
    assert status == 2
    assert "name one operator, or say --all" in err


def test_suite_audit_names_what_passes_and_should_not(run, toy_folder):
    manifest = toy_folder / "op.toml"
    manifest.write_text(re.sub(r"atol = .*", "atol = 100.0", manifest.read_text()))
    status, out, err = run("suite", "audit", "--no-coverage", *TOY)
    assert status == 2
    assert "failed  local/toy, case small" in out
    assert "an output with its second half left at zero is accepted as correct" in " ".join(out.split())
    assert "verdicts on local/toy small, local/toy large cannot be relied on" in err


def test_suite_validate_names_what_failed(run, evaluator, toy_folder):
    (toy_folder / "op_kernel" / "toy.cpp").write_text("// status: runtime_fault\n")
    status, out, err = run("suite", "validate", *TOY)
    assert status == 2
    assert "failed  local/toy, baseline on case small" in out
    assert "[run_kernel] the toy ended as asked" in out
    assert "local/toy did not pass every check" in err


def test_suite_validate_passes_sources_of_which_an_evaluation_warns_and_tells_the_warning(
    run, evaluator, toy_folder
):
    kernel = toy_folder / "op_kernel" / "toy.cpp"
    kernel.write_text(kernel.read_text() + "// warning: reads 20 bytes behind the end of x\n")
    status, out, err = run("suite", "validate", *TOY)
    assert (status, err) == (0, "building the simulator\n")
    told = out.splitlines()
    at = told.index("passed  local/toy, baseline on case small: 50.00 us")
    assert told[at + 1] == "        warning: [run_kernel] reads 20 bytes behind the end of x"


def test_help_needs_nothing():
    done = subprocess.run(
        [sys.executable, "-m", "ascend_gym.cli", "--help"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0
    assert all(command in done.stdout for command in ("suite", "evaluate", "optimize"))


def test_the_version_is_told_from_one_source(run):
    assert run("--version") == (0, f"ascend-gym {ascend_gym.__version__}\n", "")
    project = read_toml(ROOT / "pyproject.toml")
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "ascend_gym/__init__.py"


@pytest.mark.parametrize("command", [(), ("suite",), ("suite", "list"), ("optimize",)])
def test_help_has_a_short_form(run, command):
    status, out, _ = run(*command, "-h")
    assert status == 0
    assert out == run(*command, "--help")[1]
    assert "Usage" in out


@pytest.mark.parametrize(
    ("words", "expected", "others"),
    [
        ("ascend-gym optimize ge", {"gelu"}, {"core/gelu", "add"}),
        ("ascend-gym suite show core/ge", {"core/gelu"}, {"gelu", "core/add"}),
        ("ascend-gym sweep --op co", {"core"}, {"core/gelu"}),
        ("ascend-gym sweep --method be", {"best-of-n"}, {"openevolve"}),
        ("ascend-gym optimize gelu --method op", {"openevolve"}, {"best-of-n"}),
        ("ascend-gym report --method kn", {"knob-search"}, {"best-of-n"}),
        ("ascend-gym compare gre", {"greedy-rules"}, {"best-of-n"}),
        ("ascend-gym evaluate gelu --chip 910B", {"910B2", "910B4"}, {"910_93"}),
    ],
)
def test_shells_complete_names(words, expected, others):
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    environment = {"_ASCEND_GYM_COMPLETE": "complete_bash", **asked}
    outcome = CliRunner().invoke(app, [], prog_name="ascend-gym", env=environment)
    found = set(outcome.output.split())
    assert expected <= found
    assert not others & found


def test_suites_as_json(run):
    status, out, _ = run("suite", "list", "--json")
    listed = {each["op_id"]: each for each in json.loads(out)["operators"]}
    assert status == 0
    assert listed["core/gelu"]["cases"] == len(load_operator("gelu").cases)
    shown = json.loads(run("suite", "show", *TOY, "--json")[1])
    assert shown["op_id"] == "local/toy"
    assert [case["case_id"] for case in shown["cases"]] == ["small", "large"]
    assert shown["sources"]["kernel"] == ["op_kernel/toy.cpp"]
    assert "traffic_bytes" in shown["cases"][0]


def test_audits_as_json(run, monkeypatch):
    status, out, err = run("suite", "audit", "add", "--no-coverage", "--json")
    document = json.loads(out)
    assert (status, document["passed"], err) == (0, True, "")
    assert {each["operator"] for each in document["cases"]} == {"core/add"}
    monkeypatch.setattr("ascend_gym.suite.audit.audit_case", lambda spec, case, seed: ["zeros pass"])
    status, out, err = run("suite", "audit", "add", "--no-coverage", "--json")
    assert (status, json.loads(out)["passed"]) == (2, False)
    assert json.loads(out)["cases"][0]["complaints"] == ["zeros pass"]
    assert "cannot be relied on" in err


def test_exhausted_descriptors_are_explained(run, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("ascend_gym.cli.evaluate.load_operator", refuse)
    status, out, err = run("evaluate", "gelu", "--json")
    assert (status, json.loads(out)["status"]) == (3, "infra_error")
    assert "ulimit -n" in err
