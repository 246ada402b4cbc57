"""The command line as a newcomer uses it: in a process of its own, on the real daemon and simulator."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ascend_gym
from ascend_gym.core.config import ENV_CACHE, ENV_DAEMON
from ascend_gym.suite.loader import load_operator

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(simulator_cache, tmp_path):
    """Run ``ascend-gym`` in an empty folder and return the finished process."""
    inherited = {name: value for name, value in os.environ.items() if name != ENV_DAEMON}
    package_parent = Path(ascend_gym.__file__).parents[1]
    environment = {**inherited, ENV_CACHE: str(simulator_cache), "PYTHONPATH": str(package_parent)}

    def invoke(*arguments):
        command = [sys.executable, "-m", "ascend_gym.cli", *map(str, arguments)]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )

    return invoke


def _summary(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _optimize(run, *options):
    return _summary(run("optimize", "muls", "--budget", 4, "--seed", 3, "--json", *options))


@pytest.mark.slow
def test_optimize_gives_the_same_result_however_much_is_in_flight(run, tmp_path):
    first = _optimize(run, "--in-flight", 1, "--out", "one")
    second = _optimize(run, "--in-flight", 3, "--out", "three")
    where = ("journal", "best_files")
    assert {k: v for k, v in first.items() if k not in where} == {
        k: v for k, v in second.items() if k not in where
    }
    journals = [(tmp_path / summary["journal"]).read_bytes() for summary in (first, second)]
    assert journals[0] == journals[1]
    assert first["evaluations"] == 4
    assert first["speedup"] == pytest.approx(first["baseline_latency_us"] / first["best_latency_us"])


@pytest.mark.slow
def test_a_search_killed_at_any_point_is_resumed_to_the_same_journal(simulator_cache, tmp_path):
    command = [
        sys.executable,
        ROOT / "benchmarks" / "reliability" / "resume_chaos.py",
        "--methods",
        "best-of-n",
    ]
    command += ["--operators", "muls", "--budget", "4", "--kills", "3"]
    environment = {**os.environ, ENV_CACHE: str(simulator_cache), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    (outcome,) = _summary(done)
    assert outcome["same_journal"]
    assert (outcome["kills"], outcome["evaluations"]) == (3, 4)


@pytest.mark.slow
def test_the_best_candidate_evaluates_to_the_best_latency(run, simulator_daemon, tmp_path):
    best = _optimize(run, "--daemon", simulator_daemon, "--out", "found")
    done = run(
        *("evaluate", "muls", "--daemon", simulator_daemon, "--json"),
        *("--tiling-file", "found/best/op_host/muls.cpp", "--kernel-file", "found/best/op_kernel/muls.cpp"),
    )
    summary = _summary(done)
    assert summary["status"] == "ok"
    assert summary["latency_us"] == pytest.approx(best["best_latency_us"])
    assert summary["baseline_latency_us"] == pytest.approx(best["baseline_latency_us"])
    assert summary["device"]["backend"] == "simulator"


def test_evaluate_explains_an_overflow_of_the_unified_buffer(run, simulator_daemon, tmp_path):
    kernel = load_operator("muls").baseline.kernel_text
    size = "tileLength * sizeof(T)"
    assert size in kernel
    (tmp_path / "kernel.cpp").write_text(kernel.replace(size, "200000"))
    done = run("evaluate", "muls", "--daemon", simulator_daemon, "--kernel-file", "kernel.cpp", "--json")
    summary = _summary(done)
    assert summary["status"] == "runtime_fault"
    assert summary["diagnostics"][0]["call"] == "InitBuffer"
    assert "unified buffer overflow" in summary["diagnostics"][0]["message"]


def test_validate_passes_every_check_of_a_built_in_operator(run, simulator_daemon):
    done = run("suite", "validate", "muls", "--daemon", simulator_daemon)
    assert done.returncode == 0, done.stdout
    cases = [case.case_id for case in load_operator("muls").cases]
    lines = done.stdout.splitlines()
    assert lines[: len(cases)] == [f"passed  core/muls, audit of case {case}" for case in cases]
    for case, line in zip(cases, lines[len(cases) : -1], strict=True):
        assert re.fullmatch(rf"passed  core/muls, baseline on case {case}: [\d.]+ us, floor [\d.]+ us", line)
    assert re.fullmatch(rf"passed  core/muls, repeated case ({'|'.join(cases)})", lines[-1])


def test_the_profile_of_an_operator_writes_its_trace(run, tmp_path):
    done = run("profile", "gelu", "--trace", "trace.json", "--out", "csv", "--json")
    (launch,) = _summary(done)["launches"]
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    rows = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
    assert {row.rpartition(" ")[2] for row in rows} == {"S", "V", "MTE2", "MTE3"}
    assert (tmp_path / "csv" / "OpBasicInfo.csv").is_file()
    assert launch["kernel"] == "gelu"


def test_a_profile_of_what_does_not_compile_exits_with_2(run, tmp_path):
    (tmp_path / "broken.cpp").write_text("this is no kernel\n")
    done = run("profile", "gelu", "--kernel-file", "broken.cpp", "--trace", "trace.json")
    assert done.returncode == 2
    assert "build_error" in done.stderr
    assert not (tmp_path / "trace.json").exists()


@pytest.mark.slow
def test_a_chip_of_one_s_own_is_priced_by_its_figures(run, tmp_path):
    """Half the clock; a private daemon learns of the file from the command that starts it."""
    path = tmp_path / "half.toml"
    path.write_text('name = "half"\nbase = "910B2"\n[timing]\nclock_mhz = { value = 900, source = "half" }\n')
    usual, halved = (
        _summary(run("evaluate", "muls", "--chip-file", chip, "--json")) for chip in ("910B2", path)
    )
    assert 1.1 * usual["latency_us"] < halved["latency_us"] < 2 * usual["latency_us"]
