"""A connection that nobody closed is closed by the garbage collector, wherever that happens to run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FORGETS = """
import gc
from ascend_gym.client import ZmqEvaluator
for _ in range(20):
    evaluator = ZmqEvaluator("tcp://127.0.0.1:9", connect_timeout_s=0.1)
    cycle = [evaluator]
    cycle.append(cycle)
    del evaluator, cycle
    gc.collect()
print("collected")
"""


def test_a_link_in_a_cycle_is_collected() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FORGETS],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "collected\n"), ended.stderr
