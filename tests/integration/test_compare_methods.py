"""The benchmark that compares methods: tables of finished runs, and going on where it was broken off."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_gym.search.journal import JOURNAL_NAME

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "compare_methods.py"
METHODS = ["random-rewrites", "best-of-n:duplicates=free"]


@pytest.fixture
def compare(simulator_daemon, tmp_path):
    """Run the benchmark on ``exp`` with a budget of 2; return exit status, standard output and error."""

    def compare(*options):
        command = [sys.executable, SCRIPT, "--methods", *METHODS, "--operators", "exp", "--budget", 2]
        common = ["--seeds", 0, "--out", tmp_path, "--daemon", simulator_daemon]
        done = subprocess.run(
            [str(each) for each in (*command, *common, *options)],
            env={**os.environ, "PYTHONPATH": str(SCRIPT.parents[1])},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout, done.stderr

    return compare


def test_runs_are_compared_once_finished_and_resumed_when_broken_off(compare, tmp_path):
    status, out, err = compare()
    assert (status, "0 of 2 runs are finished" in err) == (0, True), err
    assert all(method in out for method in METHODS)
    first = json.loads((tmp_path / "results.json").read_text())
    assert (first["operators"], first["left_out"]) == (["core/exp"], [])
    assert set(first["speedups"]["2"]) == set(METHODS)
    assert "### Budget 2: 1 operator, 1 seed, 95 % intervals" in (tmp_path / "table.md").read_text()

    journal = tmp_path / "random-rewrites" / "core_exp" / "seed0" / JOURNAL_NAME
    whole = journal.read_bytes()
    journal.write_bytes(b"".join(whole.splitlines(keepends=True)[:-3]))
    status, _, err = compare()
    assert (status, "1 of 2 runs are finished" in err) == (0, True), err
    assert journal.read_bytes() == whole
    assert json.loads((tmp_path / "results.json").read_text())["speedups"] == first["speedups"]

    status, _, err = compare("--model", "other")
    assert (status, "other settings" in err) == (2, True), err
