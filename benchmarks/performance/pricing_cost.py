"""What pricing and the race check cost against the run: kernels of many instructions, or all built-in ones.

Built-in operators are built with tiles so small that they issue 1.6 to 8.4 million instructions; two more
work on 8192 x 8192 elements. With ``--suite`` they are taken as they are, each at all its cases. The run
executes the kernel on all its cores and writes the trace; the three programs are timed in turn on the same
job, and ratios are medians over the rounds. Standard output is a Markdown table.

    python benchmarks/performance/pricing_cost.py [--rounds N] [--suite]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ascend_gym.core.config import cache_root
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Candidate, Case, MeasureProtocol, OpSpec
from ascend_gym.suite.loader import list_operators, load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.case_data import CaseDataCache
from npu_daemon.harness import harness_identity
from npu_daemon.simulator.chips import load_chip


@dataclass(frozen=True)
class Kernel:
    """A built-in operator at one of its cases, with what is changed.

    Attributes:
        operator: its name.
        case_id: the case whose types and values are used.
        ordinary_tile: elements of a tile in its tiling source.
        tile: elements of a tile in its place; ``None`` for the source as it is.
        shape: of each tensor, in place of the shapes of the case.
    """

    operator: str
    case_id: str
    ordinary_tile: int = 0
    tile: int | None = None
    shape: tuple[int, ...] | None = None

    def case(self, spec: OpSpec) -> Case:
        """Return the case that is measured."""
        case = spec.case(self.case_id)
        if self.shape is None:
            return case
        inputs = tuple(each.model_copy(update={"shapes": (self.shape,)}) for each in case.inputs)
        outputs = tuple(each.model_copy(update={"shapes": (self.shape,)}) for each in case.outputs)
        name = "x".join(map(str, self.shape))
        return case.model_copy(update={"case_id": name, "inputs": inputs, "outputs": outputs})

    def candidate(self, spec: OpSpec) -> Candidate:
        """Return the baseline with the other tile."""
        if self.tile is None:
            return spec.baseline
        tiling, ordinary = spec.baseline.tiling_text, f"TILE_LENGTH = {self.ordinary_tile}"
        assert ordinary in tiling, f"{self.operator}: {ordinary!r} is not in its tiling"
        changed = tiling.replace(ordinary, f"TILE_LENGTH = {self.tile}", 1)
        return spec.baseline.rewritten(tiling=changed, kernel=spec.baseline.kernel_text)


KERNELS = (
    Kernel("add", "fp16_8192x2048", 2048, 128),
    Kernel("add", "fp16_8192x2048", 2048, 32),
    Kernel("exp", "fp16_4096x2048", 1024, 64),
    Kernel("gather", "fp16_8192x1024_by_4096", 512, 16),
    Kernel("rms_norm", "fp16_2048x4096", 4096, 128),
    Kernel("softmax", "fp16_4096x2048", 4096, 128),
    Kernel("add", "fp32_2048x1024", 2048, 2048, (8192, 8192)),
    Kernel("gelu", "fp32_1024x1024", 1024, 1024, (8192, 8192)),
)


# Runs a program and writes its CPU seconds and peak in KiB to standard error.
_LAUNCH = """
import os, sys
_, status, usage = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)
sys.stderr.write(f"{usage.ru_utime + usage.ru_stime} {usage.ru_maxrss}")
sys.exit(os.waitstatus_to_exitcode(status))
"""


@dataclass(frozen=True)
class Cost:
    """CPU seconds of one program, and its largest resident size in MiB, or that of what started it."""

    cpu_s: float
    peak_mib: float


def main() -> int:
    """Print the table and return the exit status."""
    parser = argparse.ArgumentParser(
        description="CPU time of pricing and the race check against that of the run."
    )
    parser.add_argument("--rounds", type=int, default=5, help="timed runs of each program")
    parser.add_argument("--suite", action="store_true", help="built-in operators as they are, at all cases")
    arguments = parser.parse_args()
    backend = SimulatorBackend(cache_root())
    print("| kernel | trace (MB) | run (s) | price/run | races/run | peak of run, price, races (MiB) |")
    print("|---|---|---|---|---|---|")
    kernels: Sequence[Kernel] = KERNELS
    if arguments.suite:
        kernels = [Kernel(spec.name, case.case_id) for spec in list_operators() for case in spec.cases]
    totals_s = [0.0, 0.0, 0.0]
    for kernel in kernels:
        row, seconds = _measured_row(backend, kernel, arguments.rounds)
        totals_s = [total + each for total, each in zip(totals_s, seconds, strict=True)]
        print(row, flush=True)
    run_s, price_s, races_s = totals_s
    print(f"| all | | {run_s:.2f} | {price_s / run_s:.2f} | {races_s / run_s:.2f} | |")
    return 0


def _measured_row(backend: SimulatorBackend, kernel: Kernel, rounds: int) -> tuple[str, list[float]]:
    """Return the line of one kernel, and the median CPU seconds of run, pricing and race check."""
    spec, protocol = load_operator(kernel.operator), MeasureProtocol(run_timeout_s=120.0)
    case, candidate = kernel.case(spec), kernel.candidate(spec)
    built = backend.build(spec, case, candidate, protocol)
    assert not isinstance(built, Failure), built
    data = CaseDataCache(cache_root() / "pricing_cost", harness_identity())
    inputs = data.obtain(spec, oracle_for(spec), case, protocol.input_seed).input_files
    run = backend.run(built, case, inputs, protocol)
    assert not isinstance(run, Failure), run
    job, tools = run.handle.job, backend.toolchain
    names = ("job", "trace", "outputs", "ranges", "chip")
    described, trace, outputs, ranges, chip = files = [job.folder / name for name in names]
    figures = load_chip(protocol.chip).pricing_text()
    contents = (job.described(str(trace), str(outputs)), "", "", job.tensor_ranges, figures)
    for file, content in zip(files, contents, strict=True):
        file.write_text(content, encoding="utf-8")
    commands = (
        [tools.run_program, described],
        [tools.price_program, trace, chip, ranges],
        [tools.races_program, trace, ranges, "on"],
    )
    try:
        rows = [
            [measured([str(word) for word in command], job.folder) for command in commands]
            for _ in range(rounds)
        ]
        trace_mb = trace.stat().st_size / 1e6
    finally:
        backend.cleanup(run)
    ratios = [median(row[index].cpu_s / row[0].cpu_s for row in rows) for index in (1, 2)]
    peaks = [max(row[index].peak_mib for row in rows) for index in range(3)]
    seconds = [median(row[index].cpu_s for row in rows) for index in range(3)]
    name = f"{kernel.operator} {case.case_id}" + ("" if kernel.tile is None else f", {kernel.tile}")
    return (
        f"| {name} | {trace_mb:.2f} | {seconds[0]:.2f} | {ratios[0]:.2f} | {ratios[1]:.2f} "
        f"| {', '.join(f'{peak:.0f}' for peak in peaks)} |"
    ), seconds


def measured(command: list[str], folder: Path) -> Cost:
    """Run a program that must succeed and answer, if at all, in JSON.

    The kernel counts into a program's peak what the process held that started it: a small one does.
    """
    launch = [sys.executable, "-I", "-S", "-c", _LAUNCH, *command]
    ended = subprocess.run(launch, cwd=folder, capture_output=True, check=False)
    assert ended.returncode == 0, (command, ended.returncode, ended.stderr)
    if ended.stdout:
        json.loads(ended.stdout)
    cpu_s, peak_kib = ended.stderr.split()
    return Cost(float(cpu_s), int(peak_kib) / 1024)


if __name__ == "__main__":
    raise SystemExit(main())
