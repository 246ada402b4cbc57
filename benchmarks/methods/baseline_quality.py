"""How far the operators' own sources are from what no kernel beats, and from the best that searches found.

For each operator of a suite: latency of its largest case, the share of it that is a launch of as many
blocks, which no source changes, the floor of the case, and latency over floor. With ``--store`` (results of
``ascend-gym sweep``) the best speedup over all runs on the operator. The closing lines count the operators
whose largest case is a launch for the most part, and name cases and tiling keys that the kernel mentions and
no case reaches.

    python benchmarks/methods/baseline_quality.py [--suite NAME] [--op NAME ...] [--chip NAME] [--store FILE]
        [--json FILE [--resume]]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ascend_gym.cli.suite import mentioned_keys
from ascend_gym.core.config import cache_root
from ascend_gym.core.records import CaseResult, MeasureProtocol, OpSpec
from ascend_gym.suite.loader import list_operators
from ascend_gym.suite.requests import request_for
from ascend_gym.sweep.store import ResultsStore
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.in_process import InProcessEvaluator
from npu_daemon.simulator.chips import Chip, load_chip

COLUMNS = ("operator", "case", "latency_us", "launch_share", "floor_us", "over_floor", "best_speedup")
_SHARES = (0.25, 0.5)

Row = dict[str, Any]


def main() -> int:
    """Measure, print the table and what stands out, and return the exit status."""
    arguments = _parse()
    chip = load_chip(arguments.chip)
    best = best_speedups(arguments.store) if arguments.store else {}
    rows = json.loads(arguments.json.read_text()) if arguments.resume and arguments.json.is_file() else []
    done = {row["operator"] for row in rows}
    evaluator = InProcessEvaluator(SimulatorBackend(cache_root()))
    for spec in list_operators(arguments.suite):
        if spec.op_id not in done and (not arguments.op or spec.name in arguments.op):
            rows.append({**measure(evaluator, spec, chip), "best_speedup": best.get(spec.op_id)})
            print(" ".join(f"{rows[-1].get(name)}" for name in COLUMNS), file=sys.stderr, flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(table(rows))
    print(conclusion(rows))
    return 0


def measure(evaluator: InProcessEvaluator, spec: OpSpec, chip: Chip) -> Row:
    """Evaluate an operator's own sources on all of its cases; figures are of the largest one."""
    protocol = MeasureProtocol(chip=chip.name)
    evaluator.submit(request_for(spec, spec.baseline, protocol))
    ((_, result),) = evaluator.poll(0.0)
    largest = max(spec.cases, key=lambda case: case.traffic_bytes)
    by_id = {each.case_id: each for each in result.cases}
    keys = {each.launch.tiling_key for each in result.cases if each.launch}
    row: Row = {
        "operator": spec.op_id,
        "case": largest.case_id,
        "status": result.status.value,
        "unreached_keys": sorted(mentioned_keys(spec) - keys) if keys else [],
    }
    case = by_id.get(largest.case_id)
    if case is None or case.profile is None or case.launch is None or case.floor_us is None:
        return {**row, "message": [str(each) for each in result.all_diagnostics]}
    latency_us = case.profile.task_duration_us
    return {
        **row,
        "latency_us": round(latency_us, 2),
        "launch_share": round(launch_us(case, chip) / latency_us, 3),
        "floor_us": round(case.floor_us, 2),
        "over_floor": round(latency_us / case.floor_us, 2),
    }


def launch_us(case: CaseResult, chip: Chip) -> float:
    """Return what a launch of as many blocks takes before the last of them computes, in microseconds."""
    if case.launch is None or case.profile is None:
        return 0.0
    cubes = case.profile.aic_time > 0
    per_block = "launch_per_cube_us" if cubes else "launch_per_block_us"
    blocks = min(case.launch.block_dim, int(chip.geometry["aic_cores" if cubes else "aiv_cores"].value))
    fixed, each = (
        sum(float(chip.timing[name].value) for name in names)
        for names in (("launch_us", "block_start_us"), (per_block, "block_stagger_us"))
    )
    return fixed + blocks * each


def best_speedups(store: Path) -> Mapping[str, float]:
    """Return the best speedup of all runs in a results store, by operator."""
    best: dict[str, float] = {}
    with ResultsStore(store) as results:
        for run in results.runs():
            best[run.op_id] = max(best.get(run.op_id, 1.0), run.speedup)
    return best


def table(rows: Sequence[Row]) -> str:
    """Return a Markdown table, the operators nearest to a mere launch first."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    for row in sorted(rows, key=lambda each: -each.get("launch_share", 1.0)):
        lines.append(f"| {' | '.join(str(row.get(name, '')) for name in COLUMNS)} |")
    return "\n".join(lines)


def conclusion(rows: Sequence[Row]) -> str:
    """Return what stands out: launches, operators that fail, keys that no case reaches."""
    lines = [""]
    for share in _SHARES:
        names = [row["operator"] for row in rows if row.get("launch_share", 0.0) > share]
        lines.append(f"launch above {share:g} of the largest case: {len(names)}: {', '.join(names)}")
    failed = [f"{row['operator']} ({row['status']})" for row in rows if row["status"] != "ok"]
    lines.append(f"own sources fail: {len(failed)}: {', '.join(failed)}")
    missed = [f"{row['operator']} {row['unreached_keys']}" for row in rows if row["unreached_keys"]]
    lines.append(f"tiling keys that no case reaches: {len(missed)}: {'; '.join(missed)}")
    return "\n".join(lines)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", default="core", help="an installed or imported suite")
    parser.add_argument("--op", nargs="+", default=[], metavar="NAME", help="only these operators")
    parser.add_argument("--chip", default="910B2")
    parser.add_argument("--store", type=Path, metavar="FILE", help="results of sweeps")
    parser.add_argument("--json", type=Path, metavar="FILE", help="rewritten after every operator")
    parser.add_argument("--resume", action="store_true", help="measure only what is not in that file")
    arguments = parser.parse_args()
    if arguments.resume and not arguments.json:
        parser.error("--resume goes on with the file of --json: name one")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
