"""Wall time of re-evaluating ``add`` at 8192x2048 fp16 through a real daemon.

Each round changes a constant in the kernel, so that the kernel is rebuilt, and then asks the same again,
which the cache answers. Prints a table on standard error and one JSON document on standard output. Exit
status 1 when a target, which is for an idle machine, is missed.

    python benchmarks/performance/evaluation_latency.py --rounds 7
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from statistics import median
from typing import Any

from ascend_gym.client import connect
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import EvalRequest, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.env.evaluation import evaluate
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import request_for

OPERATOR = "core/add"
CASE = "fp16_8192x2048"
FRESH_TARGET_S = 0.25
CACHED_TARGET_S = 0.020


@dataclass(frozen=True)
class Timed:
    """A result and the wall seconds that it took the caller."""

    result: EvalResult
    seconds: float


def main() -> int:
    """Measure, print, and return the exit status."""
    arguments = _parse()
    spec = load_operator(OPERATOR)
    evaluator = connect(arguments.daemon)
    try:
        _timed(evaluator, _request(spec, "0"))
        rounds = [_round(evaluator, spec, f"{time.time_ns()}") for _ in range(arguments.rounds)]
    finally:
        evaluator.close()
    report = _report(rounds)
    _print_table(report)
    print(json.dumps(report, indent=2))
    return 0 if report["fresh"]["met"] and report["cached"]["met"] else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7, help="measured rounds, at least 1")
    parser.add_argument("--daemon", help="address of a daemon; by default a private one is started")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {arguments.rounds}")
    return arguments


def _round(evaluator: Evaluator, spec: OpSpec, nonce: str) -> tuple[Timed, Timed]:
    request = _request(spec, nonce)
    fresh, cached = _timed(evaluator, request), _timed(evaluator, request)
    for timed, expected in ((fresh, False), (cached, True)):
        if timed.result.latency_us is None or timed.result.cached is not expected:
            reasons = "; ".join(str(diagnostic) for diagnostic in timed.result.all_diagnostics)
            status = timed.result.status.value
            raise SystemExit(
                f"expected ok with cached={expected}, got {status}, cached={timed.result.cached}: {reasons}"
            )
    return fresh, cached


def _request(spec: OpSpec, nonce: str) -> EvalRequest:
    kernel = f"{spec.baseline.kernel_text}\nconstexpr uint64_t BENCHMARK_ROUND = {nonce};\n"
    return request_for(spec, spec.baseline.rewritten(kernel=kernel), MeasureProtocol(), (CASE,))


def _timed(evaluator: Evaluator, request: EvalRequest) -> Timed:
    start_s = time.perf_counter()
    result = evaluate(evaluator, request)
    return Timed(result, time.perf_counter() - start_s)


def _report(rounds: list[tuple[Timed, Timed]]) -> dict[str, Any]:
    fresh, cached = ([pair[side] for pair in rounds] for side in (0, 1))
    phases = ("queue", "build", "run", "verify", "price")
    return {
        "operator": OPERATOR,
        "case": CASE,
        "rounds": len(rounds),
        "fresh": _summary(fresh, FRESH_TARGET_S),
        "fresh_phase_seconds": {
            phase: median(getattr(timed.result.seconds, phase) for timed in fresh) for phase in phases
        },
        "cached": _summary(cached, CACHED_TARGET_S),
    }


def _summary(timed: list[Timed], target_s: float) -> dict[str, Any]:
    seconds = [each.seconds for each in timed]
    middle_s = median(seconds)
    return {
        "median_s": middle_s,
        "min_s": min(seconds),
        "max_s": max(seconds),
        "target_s": target_s,
        "met": middle_s <= target_s,
    }


def _print_table(report: dict[str, Any]) -> None:
    print(f"{report['operator']}, case {report['case']}, {report['rounds']} rounds", file=sys.stderr)
    print(f"{'':<8}{'median ms':>12}{'min ms':>10}{'max ms':>10}{'target ms':>12}", file=sys.stderr)
    for name in ("fresh", "cached"):
        row = report[name]
        cells = (f"{row[f'{column}_s'] * 1e3:.1f}" for column in ("median", "min", "max", "target"))
        line = "{:>12}{:>10}{:>10}{:>12}".format(*cells)
        print(f"{name:<8}{line}  {'met' if row['met'] else 'MISSED'}", file=sys.stderr)
    phases = (f"{name} {seconds * 1e3:.0f} ms" for name, seconds in report["fresh_phase_seconds"].items())
    print(f"fresh, median by phase: {', '.join(phases)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
