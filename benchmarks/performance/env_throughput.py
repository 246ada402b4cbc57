"""What the environment costs beyond its evaluator, and how many steps a vector environment takes in a second.

Each family pair plays the same actions twice on one daemon: first so that every result is known, then
measured, with all answers from the daemon's cache. The overhead of a step is its wall time without the time
spent inside the evaluator. Prints a table on standard error and one JSON document on standard output. Exit
status 1 when a target is missed.

    python benchmarks/performance/env_throughput.py --steps 200
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from ascend_gym.client import connect
from ascend_gym.core.protocols import Evaluation, Evaluator
from ascend_gym.core.records import DeviceInfo, EvalRequest, EvalResult
from ascend_gym.env.op_env import AscendOpEnv
from ascend_gym.env.rewrite_actions import KNOB_POSITIONS, KNOBS, numbered_moves
from ascend_gym.env.vector_env import AscendOpVectorEnv
from ascend_gym.suite.loader import load_operator

OPERATOR = "core/add"
FAMILIES = (
    ("sources", "text"),
    ("edits", "text"),
    ("rules", "text"),
    ("rules", "features"),
    ("knobs", "features"),
    ("rules", "graph"),
)
VECTOR_FAMILIES = (("rules", "features"), ("knobs", "features"), ("edits", "text"))
CANDIDATES = 12  # different actions of a family: known results, so few are as good as many
TARGET_MS = {"text": 3.0, "features": 1.0, "graph": 1.0}
NUM_ENVS = 16
TARGET_STEPS_PER_S = 500.0


class TimedEvaluator:
    """Passes everything on and adds up the seconds that it takes."""

    def __init__(self, inner: Evaluator) -> None:
        self._inner = inner
        self._outer: dict[Evaluation, Evaluation] = {}
        self.seconds = 0.0

    def submit(self, request: EvalRequest) -> Evaluation:
        """See ``Evaluator``."""
        inner = self._timed(partial(self._inner.submit, request))
        return self._outer.setdefault(inner, Evaluation(self, request))

    def poll(self, timeout_s: float) -> list[tuple[Evaluation, EvalResult]]:
        """See ``Evaluator``."""
        finished = [
            (self._outer.pop(inner), result)
            for inner, result in self._timed(partial(self._inner.poll, timeout_s))
        ]
        for evaluation, result in finished:
            evaluation.finish(result)
        return finished

    def cancel(self, evaluation: Evaluation) -> None:
        """See ``Evaluator``."""
        for inner, outer in self._outer.items():
            if outer is evaluation:
                inner.cancel()

    def describe(self) -> DeviceInfo:
        """See ``Evaluator``."""
        return self._inner.describe()

    def close(self) -> None:
        """See ``Evaluator``."""
        self._inner.close()

    def _timed(self, call: Callable[[], Any]) -> Any:
        start_s = time.perf_counter()
        try:
            return call()
        finally:
            self.seconds += time.perf_counter() - start_s


def main() -> int:
    """Measure, print, and return the exit status."""
    arguments = _parse()
    evaluator = TimedEvaluator(connect(arguments.daemon))
    try:
        report = {
            "operator": OPERATOR,
            "steps": arguments.steps,
            "load_average": os.getloadavg()[0],
            "overhead_ms": [_overhead(evaluator, *pair, arguments.steps) for pair in FAMILIES],
            "mask_ms": _mask_ms(arguments.steps),
            "vector": [_vector(evaluator, *pair, arguments.steps) for pair in VECTOR_FAMILIES],
        }
    finally:
        evaluator.close()
    _print_table(report)
    print(json.dumps(report, indent=2))
    return 0 if all(row["met"] for row in (*report["overhead_ms"], *report["vector"])) else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=200, help="measured steps of each kind, at least 20")
    parser.add_argument("--daemon", help="address of a daemon; by default a private one is started")
    arguments = parser.parse_args()
    if arguments.steps < 20:
        parser.error(f"--steps must be at least 20, got {arguments.steps}")
    return arguments


def _actions(family: str) -> list[Any]:
    """Return a few actions of a family that each stand for another candidate of the baseline."""
    baseline = load_operator(OPERATOR).baseline
    texts = [f"{baseline.kernel_text}\n// candidate {number}\n" for number in range(CANDIDATES)]
    if family == "sources":
        return [{"tiling": "", "kernel": text} for text in texts]
    if family == "edits":
        return [f"### FILE: {baseline.kernel.main}\n```cpp\n{text}```\n" for text in texts]
    if family == "rules":
        return sorted(numbered_moves(baseline))[:CANDIDATES]
    rng = np.random.default_rng(0)
    return list(rng.integers(0, KNOB_POSITIONS, size=(CANDIDATES, KNOBS)))


def _overhead(evaluator: TimedEvaluator, actions: str, observations: str, steps: int) -> dict[str, Any]:
    env = AscendOpEnv(
        OPERATOR, actions=actions, observations=observations, budget=2 * steps, evaluator=evaluator
    )
    env.reset(seed=0)
    known = _actions(actions)
    for action in known:
        env.step(action)
    seconds, evaluating = [], []
    for number in range(steps):
        evaluator.seconds, start_s = 0.0, time.perf_counter()
        env.step(known[number % len(known)])
        seconds.append(time.perf_counter() - start_s - evaluator.seconds)
        evaluating.append(evaluator.seconds)
    target_ms = TARGET_MS[observations]
    return {
        "actions": actions,
        "observations": observations,
        "median_ms": median(seconds) * 1e3,
        "p95_ms": sorted(seconds)[int(0.95 * steps)] * 1e3,
        "evaluator_median_ms": median(evaluating) * 1e3,
        "target_ms": target_ms,
        "met": median(seconds) * 1e3 <= target_ms,
    }


def _mask_ms(count: int) -> float:
    """Return the median milliseconds of the first action mask of a new incumbent."""
    baseline = load_operator(OPERATOR).baseline
    seconds = []
    for number in range(min(count, 50)):
        unseen = baseline.rewritten(kernel=f"{baseline.kernel_text}\n// unseen {number}\n")
        start_s = time.perf_counter()
        numbered_moves(unseen)
        seconds.append(time.perf_counter() - start_s)
    return median(seconds) * 1e3


def _vector(evaluator: TimedEvaluator, actions: str, observations: str, steps: int) -> dict[str, Any]:
    envs = AscendOpVectorEnv(
        NUM_ENVS,
        operator=OPERATOR,
        actions=actions,
        observations=observations,
        budget=4 * steps,
        evaluator=evaluator,
    )
    envs.reset(seed=0)
    known = _actions(actions)
    batches = [_batch(known, first) for first in range(len(known))]
    for batch in batches:
        envs.step(batch)
    seconds, cpu_seconds = [], []
    for number in range(steps // 4):
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        envs.step(batches[number % len(batches)])
        seconds.append(time.perf_counter() - start_s)
        cpu_seconds.append(time.process_time() - start_cpu_s)
    steps_per_s = NUM_ENVS / median(seconds)
    return {
        "actions": actions,
        "observations": observations,
        "num_envs": NUM_ENVS,
        "median_batch_ms": median(seconds) * 1e3,
        "median_cpu_ms": median(cpu_seconds) * 1e3,
        "steps_per_s": steps_per_s,
        "target_steps_per_s": TARGET_STEPS_PER_S,
        "met": steps_per_s >= TARGET_STEPS_PER_S,
    }


def _batch(known: list[Any], first: int) -> Any:
    chosen = [known[(first + number) % len(known)] for number in range(NUM_ENVS)]
    return tuple(chosen) if isinstance(chosen[0], str) else np.array(chosen)


def _print_table(report: dict[str, Any]) -> None:
    print(
        f"{'step beyond the evaluator':<28}{'median ms':>10}{'p95 ms':>9}{'target ms':>11}", file=sys.stderr
    )
    for row in report["overhead_ms"]:
        name = f"{row['actions']} x {row['observations']}"
        cells = f"{row['median_ms']:>10.2f}{row['p95_ms']:>9.2f}{row['target_ms']:>11.1f}"
        print(f"{name:<28}{cells}  {'met' if row['met'] else 'MISSED'}", file=sys.stderr)
    print(f"mask of an unseen incumbent: {report['mask_ms']:.1f} ms", file=sys.stderr)
    title = f"vector env of {NUM_ENVS}, known"
    print(f"{title:<28}{'batch ms':>10}{'own CPU':>9}{'steps/s':>9}{'target':>9}", file=sys.stderr)
    for row in report["vector"]:
        name = f"{row['actions']} x {row['observations']}"
        times = f"{row['median_batch_ms']:>10.1f}{row['median_cpu_ms']:>9.1f}"
        rates = f"{row['steps_per_s']:>9.0f}{row['target_steps_per_s']:>9.0f}"
        print(f"{name:<28}{times}{rates}  {'met' if row['met'] else 'MISSED'}", file=sys.stderr)
    print(f"load average when it began: {report['load_average']:.1f}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
