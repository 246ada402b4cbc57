"""Benchmarks start: all of them as far as their help, those without a checkout at their smallest size."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from daemon_processes import DEADLINE_S

from npu_daemon.backends.simulator import SimulatorBackend

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPTS = sorted(
    path for path in BENCHMARKS.glob("*/*.py") if "parse_args()" in path.read_text(encoding="utf-8")
)
SMALLEST = {
    "reliability/service_fuzz.py": "--messages 300 --to-daemon 30",
    "reliability/service_load.py": "--workers 2 --service-ms 1 --jobs 20 --latency-jobs 5",
    "reliability/service_soak.py": "--evaluations 9 --step 1 --warm-up-jobs 2 --workers 1",
    "reliability/staged_programs.py": "--programs 1",
    "performance/sweep_scale.py": "state --runs 4 --daemons 2 --evaluations 20",
    "methods/prompt_lengths.py": "--op add --method best-of-n",
    "methods/retrieval.py": "--embedder lexical",
}
OPTIONAL = {"matplotlib", "onnxruntime", "optuna", "ray", "scipy", "torch", "verifiers"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(BENCHMARKS)))
def test_a_benchmark_can_be_started(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its imports and options are there, wherever its parts have been moved."""
    monkeypatch.syspath_prepend(str(script.parent))
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    try:
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(script), run_name="__main__")
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise
        pytest.skip(f"{error.name} is not installed")
    assert ended.value.code == 0
    assert "usage:" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(("script", "options"), SMALLEST.items())
def test_a_benchmark_runs_at_its_smallest_size(
    script: str, options: str, simulator: SimulatorBackend, simulator_cache: Path
) -> None:
    assert simulator.toolchain.run_program.exists()
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *options.split()],
        env={**os.environ, "ASCEND_GYM_CACHE": str(simulator_cache)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=3 * DEADLINE_S,
    )
    grows = script.endswith("soak.py") and done.returncode == 1  # nine evaluations are no soak
    assert done.returncode == 0 or grows, done.stdout[-2000:] + done.stderr[-2000:]
    assert done.stdout
