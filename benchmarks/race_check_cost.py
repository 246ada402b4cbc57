"""What looking for races costs: CPU time of the check against that of the run whose trace it reads.

Each built-in operator is built and run at every case; the two programs are timed in turn on the same trace,
and the best of the repeats counts. Standard output is a Markdown table.

    python benchmarks/race_check_cost.py [--repeats N]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
from pathlib import Path

from ascend_gym.core.config import cache_root
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Case, MeasureProtocol, OpSpec
from ascend_gym.suite.loader import list_operators
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.case_data import CaseDataCache
from npu_daemon.harness import harness_identity


def main() -> int:
    """Print the table and return the exit status."""
    parser = argparse.ArgumentParser(description="CPU time of the race check against that of the run.")
    parser.add_argument(
        "--repeats", type=int, default=3, help="runs of each program, of which the best counts"
    )
    arguments = parser.parse_args()
    backend = SimulatorBackend(cache_root())
    print("| operator | case | trace (MB) | run (ms) | check (ms) | share |\n|---|---|---|---|---|---|")
    totals = [0.0, 0.0]
    for spec in list_operators():
        for case in spec.cases:
            trace_bytes, run_s, check_s = measure(backend, spec, case, arguments.repeats)
            totals = [totals[0] + run_s, totals[1] + check_s]
            print(_row(spec.name, case.case_id, trace_bytes, run_s, check_s))
    print(_row("all", "", 0, *totals))
    return 0


def measure(backend: SimulatorBackend, spec: OpSpec, case: Case, repeats: int) -> tuple[int, float, float]:
    """Return the size of the trace in bytes, and the CPU seconds of the run and of the check."""
    protocol = MeasureProtocol()
    built = backend.build(spec, case, spec.baseline, protocol)
    assert not isinstance(built, Failure), built
    data = CaseDataCache(cache_root() / "race_check_cost", harness_identity()).obtain(
        spec, oracle_for(spec), case, protocol.input_seed
    )
    run = backend.run(built, case, data.input_files, protocol)
    assert not isinstance(run, Failure), run
    try:
        job, tools = run.handle.job, backend.toolchain
        names = ("job", "trace", "outputs", "ranges")
        described, trace, outputs, ranges = files = [job.folder / name for name in names]
        contents = (job.described(str(trace), str(outputs)), "", "", job.tensor_ranges)
        for file, content in zip(files, contents, strict=True):
            file.write_text(content, encoding="utf-8")
        check = [str(tools.races_program), str(trace), str(ranges), "on"]
        run_s = min(_cpu_s([str(tools.run_program), str(described)], job.folder) for _ in range(repeats))
        check_s = min(_cpu_s(check, job.folder) for _ in range(repeats))
        return trace.stat().st_size, run_s, check_s
    finally:
        backend.cleanup(run)


def _cpu_s(command: list[str], folder: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _row(name: str, case_id: str, trace_bytes: int, run_s: float, check_s: float) -> str:
    size = f"{trace_bytes / 1e6:.2f}" if trace_bytes else ""
    return (
        f"| {name} | {case_id} | {size} | {run_s * 1e3:.0f} | {check_s * 1e3:.0f} | {check_s / run_s:.3f} |"
    )


if __name__ == "__main__":
    raise SystemExit(main())
