"""The reliability benchmark runs, at its smallest size: what it publishes can be repeated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from daemon_processes import DEADLINE_S

from npu_daemon.backends.simulator import SimulatorBackend

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "reliability" / "service_chaos.py"
SIZE = {
    "jobs": 16,
    "variants": 8,
    "kills": 4,
    "corruptions": 4,
    "others": 5,
    "tenants": 2,
    "workers": 2,
    "spacing-s": 0.6,
    "limit-s": 5 * DEADLINE_S,
}


@pytest.mark.slow
def test_nothing_that_happens_to_a_host_costs_or_changes_an_answer(
    simulator: SimulatorBackend, simulator_cache: Path
) -> None:
    assert simulator.toolchain.run_program.exists()
    options = [word for name, value in SIZE.items() for word in (f"--{name}", str(value))]
    environment = {**os.environ, "ASCEND_GYM_CACHE": str(simulator_cache)}
    command = [sys.executable, str(SCRIPT), *options]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    report = json.loads(done.stdout)
    assert report["happened"]["damage"] >= 1
    assert {"worker", "below_worker", "broker", "client"} & set(report["happened"])
    wrong = ("lost", "answered_twice", "different", "charged_for_damage", "charged_twice")
    assert {name: report[name] for name in wrong} == dict.fromkeys(wrong, 0)
    assert report["left_running"] == report["left_in_temporary_folder"] == []
