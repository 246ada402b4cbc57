"""The reliability benchmark runs, at its smallest size: what it publishes can be repeated."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "reliability" / "service_chaos.py"


@pytest.mark.slow
def test_jobs_survive_kills() -> None:
    command = [sys.executable, str(SCRIPT), "--jobs", "12", "--kills", "4", "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    report = json.loads(done.stdout)
    assert sum(report["kills"].values()) == 4
    wrong = ("lost", "answered_twice", "different", "charged_twice")
    assert {name: report[name] for name in wrong} == dict.fromkeys(wrong, 0)
    assert report["charged"] == 12
