"""The command line: evaluate, suite, and what it says of misuse."""

import json
import re
import subprocess
import sys

import pytest

from ascend_gym.core.errors import DaemonUnreachableError
from ascend_gym.core.status import Blame, Status, rule_of

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


def test_suite_show_tells_cases_and_sources(run):
    status, out, _ = run("suite", "show", *TOY)
    assert status == 0
    assert "local/toy (Toy)" in out
    assert "Scales [a tensor]." in out
    assert "op_host/toy.cpp, op_kernel/toy.cpp" in out
    assert "scale=2.0" in out


def test_suite_validate_reports_each_check(run, evaluator):
    status, out, err = run("suite", "validate", *TOY)
    assert (status, err) == (0, "building the simulator\n")
    assert out.splitlines() == [
        "passed  audit of case small",
        "passed  audit of case large",
        "passed  baseline on case small",
        "passed  baseline on case large",
    ]


def test_suite_audit_reports_each_case(run, evaluator):
    status, out, _ = run("suite", "audit", *TOY)
    assert status == 0
    assert out.splitlines() == ["passed  local/toy, case small", "passed  local/toy, case large"]
    assert evaluator.requests == []


@pytest.mark.parametrize("arguments", [[], ["gelu", "--all"]])
def test_suite_audit_wants_one_operator_or_all(run, arguments):
    status, _, err = run("suite", "audit", *arguments)
    assert status == 2
    assert "name one operator, or say --all" in err


def test_suite_audit_names_what_passes_and_should_not(run, toy_folder):
    manifest = toy_folder / "op.toml"
    manifest.write_text(re.sub(r"atol = .*", "atol = 100.0", manifest.read_text()))
    status, out, err = run("suite", "audit", *TOY)
    assert status == 2
    assert "failed  local/toy, case small" in out
    assert "an output with its second half left at zero is accepted as correct" in " ".join(out.split())
    assert "verdicts on local/toy small, local/toy large cannot be relied on" in err


def test_suite_validate_names_what_failed(run, evaluator, toy_folder):
    (toy_folder / "op_kernel" / "toy.cpp").write_text("// status: runtime_fault\n")
    status, out, err = run("suite", "validate", *TOY)
    assert status == 2
    assert "failed  baseline on case small" in out
    assert "[run_kernel] the toy ended as asked" in out
    assert "local/toy did not pass every check" in err


def test_help_needs_nothing():
    done = subprocess.run(
        [sys.executable, "-m", "ascend_gym.cli", "--help"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0
    assert all(command in done.stdout for command in ("suite", "evaluate", "optimize"))
