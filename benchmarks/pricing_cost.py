"""What pricing and the race check cost for kernels of many instructions, against the run.

Built-in operators are built with tiles so small that they issue about a million instructions and more. The
three programs are timed in turn on the same job; ratios are medians over the rounds. Standard output is a
Markdown table.

    python benchmarks/pricing_cost.py [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ascend_gym.core.config import cache_root
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.case_data import CaseDataCache
from npu_daemon.service import harness_digest
from npu_daemon.simulator.chips import load_chip

# Operator, case, and the tile length of its baseline with the one it is measured with.
KERNELS = (
    ("add", "fp16_8192x2048", "TILE_LENGTH = 2048", "TILE_LENGTH = 128"),
    ("add", "fp16_8192x2048", "TILE_LENGTH = 2048", "TILE_LENGTH = 32"),
    ("exp", "fp16_4096x2048", "TILE_LENGTH = 1024", "TILE_LENGTH = 64"),
    ("gather", "fp16_8192x1024_by_4096", "TILE_LENGTH = 512", "TILE_LENGTH = 16"),
    ("rms_norm", "fp16_2048x4096", "TILE_LENGTH = 4096", "TILE_LENGTH = 128"),
    ("softmax", "fp16_4096x2048", "TILE_LENGTH = 4096", "TILE_LENGTH = 128"),
)


@dataclass(frozen=True)
class Cost:
    """CPU seconds of one program, and its largest resident size in MiB."""

    cpu_s: float
    peak_mib: float


def main() -> int:
    """Print the table and return the exit status."""
    parser = argparse.ArgumentParser(
        description="CPU time of pricing and the race check against that of the run."
    )
    parser.add_argument("--rounds", type=int, default=5, help="timed runs of each program")
    arguments = parser.parse_args()
    backend = SimulatorBackend(cache_root())
    print("| kernel | trace (MB) | run (s) | price/run | races/run | peak of run, price, races (MiB) |")
    print("|---|---|---|---|---|---|")
    for operator, case_id, ordinary, small in KERNELS:
        print(_row(backend, operator, case_id, ordinary, small, arguments.rounds), flush=True)
    return 0


def _row(
    backend: SimulatorBackend, operator: str, case_id: str, ordinary: str, small: str, rounds: int
) -> str:
    spec, protocol = load_operator(operator), MeasureProtocol(run_timeout_s=120.0)
    case = spec.case(case_id)
    tiling = spec.baseline.tiling_text
    assert ordinary in tiling, f"{operator}: {ordinary!r} is not in its tiling"
    candidate = spec.baseline.rewritten(
        tiling=tiling.replace(ordinary, small, 1), kernel=spec.baseline.kernel_text
    )
    built = backend.build(spec, case, candidate, protocol)
    assert not isinstance(built, Failure), built
    data = CaseDataCache(cache_root() / "pricing_cost", harness_digest())
    inputs = data.obtain(spec, oracle_for(spec), case, protocol.input_seed).input_files
    run = backend.run(built, case, inputs, protocol)
    assert not isinstance(run, Failure), run
    job, tools = run.handle.job, backend.toolchain
    chip = job.folder / "chip"
    chip.write_text(load_chip(protocol.chip).pricing_text(), encoding="ascii")
    commands = (
        [tools.run_program, job.path],
        [tools.price_program, job.trace, chip, job.tensor_ranges],
        [tools.races_program, job.trace, job.tensor_ranges, "on"],
    )
    try:
        rows = [
            [measured([str(word) for word in command], job.folder) for command in commands]
            for _ in range(rounds)
        ]
        trace_mb = job.trace.stat().st_size / 1e6
    finally:
        backend.cleanup(run)
    ratios = [median(row[index].cpu_s / row[0].cpu_s for row in rows) for index in (1, 2)]
    peaks = [max(row[index].peak_mib for row in rows) for index in range(3)]
    return (
        f"| {operator} {case_id}, {small} | {trace_mb:.2f} | {median(row[0].cpu_s for row in rows):.2f} "
        f"| {ratios[0]:.2f} | {ratios[1]:.2f} | {', '.join(f'{peak:.0f}' for peak in peaks)} |"
    )


def measured(command: list[str], folder: Path) -> Cost:
    """Run a program that must succeed and answer, if at all, in JSON."""
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        answer = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (command, process.returncode)
    if answer:
        json.loads(answer)
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


if __name__ == "__main__":
    raise SystemExit(main())
