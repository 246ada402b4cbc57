"""The benchmark of rules on a checkout of one small operator: counts, evaluates, and does nothing twice."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "tests" / "operators" / "shift", tmp_path / "checkout/src/math/shift")
    return tmp_path / "checkout"


def _run(checkout: Path, cache_dir: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "benchmarks/methods/rules.py", "--cann-ops", str(checkout), *options]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "ASCEND_GYM_CACHE": str(cache_dir)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)


def test_rules_are_counted_evaluated_and_resumed(
    checkout: Path, simulator_cache: Path, tmp_path: Path
) -> None:
    records, report = tmp_path / "records.jsonl", tmp_path / "report.json"
    options = ("--evaluate", "--rule", "kernel_tile_size", "--records", str(records), "--json", str(report))
    first = _run(checkout, simulator_cache, *options)
    assert first.returncode == 0, first.stderr
    rows = {row["rule"]: row for row in json.loads(report.read_text())["rules"]}
    row = rows["kernel_tile_size"]
    assert row.pop("best_speedup") > 1.01
    counted = dict.fromkeys(("applies", "evaluated", "compiles", "correct", "helps"), 1)
    assert row == {"rule": "kernel_tile_size", "family": "tiling", **counted}
    assert (rows["tile_size"]["applies"], rows["tile_size"]["evaluated"]) == (1, 0)
    lines = records.read_text().splitlines()
    assert [json.loads(line)["rule"] for line in lines] == ["", "kernel_tile_size", "kernel_tile_size"]
    records.write_text("\n".join([*lines[:2], lines[2][:20]]))
    assert _run(checkout, simulator_cache, *options).stdout == first.stdout
    assert records.read_text().splitlines() == lines


def test_unknown_rules_are_refused(checkout: Path, tmp_path: Path) -> None:
    refused = _run(checkout, tmp_path, "--rule", "magic")
    assert refused.returncode == 2
    assert "no rules ['magic']" in refused.stderr
