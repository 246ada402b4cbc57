"""What an evaluation on the simulator costs, stage by stage, and its execution speed next to numpy.

Two tables, printed on standard error, and one JSON document on standard output:

- seconds of build, run and price for the smallest cases of built-in operators and, with ``--cann-ops``, for
  operators of a checkout at the shapes of their examples: *cold* (nothing cached but the toolchain) and
  *kernel changed* (the host is cached). Verification is listed beside them; making inputs and expectations
  is not measured.
- CPU seconds of executing element-wise kernels, process start and files included, next to numpy doing the
  same work on arrays of the same type in memory, on one core.

Exit status 1 when a target is missed. Figures mean something on an idle machine only.

    python benchmarks/performance/simulator_speed.py [--cann-ops DIR] [--rounds 5]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ascend_gym.core.config import cache_root
from ascend_gym.core.protocols import Failure, RunOutput
from ascend_gym.core.records import Candidate, Case, MeasureProtocol, OpSpec
from ascend_gym.suite.imported import select_operators
from ascend_gym.suite.inputs import case_inputs
from ascend_gym.suite.loader import list_operators, load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.case_data import CaseDataCache
from npu_daemon.harness import harness_identity
from npu_daemon.simulator.kernel_run import tensor_sizes_bytes

COLD_TARGET_S, KERNEL_CHANGED_TARGET_S, NUMPY_TARGET = 1.2, 0.6, 15.0
CANN_OPS = (
    "addcdiv",
    "addcmul",
    "arange",
    "bev_pool",
    "equal",
    "fill",
    "foreach_add_list",
    "foreach_exp",
    "foreach_tanh",
    "gcd",
    "muls",
    "sqrt",
)
PROTOCOL = MeasureProtocol()
INPUT_SEED = 0


def _gelu(x: Any) -> Any:
    # in the type of x, which numpy scalars of Python floats do not widen
    return x / (1.0 + np.exp(-1.5957691216 * (x + 0.044715 * x * x * x)))


# Operator, case, and the same work in numpy, in the element type of the case.
ELEMENTWISE: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("core/add", "fp16_8192x2048", np.add),
    ("core/add", "fp32_2048x1024", np.add),
    ("core/muls", "fp16_8192x1024", lambda x: x * 0.5),
    ("core/muls", "fp32_2048x2048", lambda x: x * 0.5),
    ("core/exp", "fp16_4096x2048", np.exp),
    ("core/exp", "fp32_2048x1024", np.exp),
    ("core/gelu", "fp16_2048x4096", _gelu),
    ("core/gelu", "fp32_1024x1024", _gelu),
)


@dataclass(frozen=True)
class Stages:
    """Wall seconds of one evaluation, by stage."""

    host: float
    kernel: float
    tiling: float
    run: float
    price: float
    verify: float

    @property
    def total(self) -> float:
        """Build, run and price."""
        return self.host + self.kernel + self.tiling + self.run + self.price


class Bench:
    """Evaluates operators with an empty build cache beside the toolchain of this user."""

    def __init__(self, scratch: Path) -> None:
        cache_root().mkdir(parents=True, exist_ok=True)
        SimulatorBackend(cache_root())
        (scratch / "toolchain").symlink_to(cache_root() / "toolchain")
        self.backend = SimulatorBackend(scratch)
        self._case_data = CaseDataCache(cache_root() / "benchmark", harness_identity())

    def rounds(self, spec: OpSpec, case: Case, count: int) -> tuple[list[Stages], list[Stages]]:
        """Return ``count`` cold evaluations, and one with a changed kernel after each."""
        cold, changed = [], []
        for _ in range(count):
            host = f"{spec.baseline.tiling_text}\n// {time.time_ns()}\n"
            for series in (cold, changed):
                kernel = f"{spec.baseline.kernel_text}\n// {time.time_ns()}\n"
                series.append(self.evaluate(spec, case, spec.baseline.rewritten(tiling=host, kernel=kernel)))
        return cold, changed

    def evaluate(self, spec: OpSpec, case: Case, candidate: Candidate) -> Stages:
        """Take a candidate through all stages; it must be correct."""
        with self.finished_run(spec, case, candidate) as (run, build_seconds, expected):
            started_s = time.perf_counter()
            verdict = oracle_for(spec).judge(case, run.outputs, expected)
            judged_s = time.perf_counter()
            if not verdict.correct:
                raise SystemExit(f"{spec.op_id} {case.case_id}: {verdict.message}")
            _require(spec, self.backend.measure(run, case, PROTOCOL))
            priced_s = time.perf_counter()
        tiling_s = run.handle.tiling.seconds
        return Stages(
            *build_seconds, tiling_s, run.seconds - tiling_s, priced_s - judged_s, judged_s - started_s
        )

    @contextlib.contextmanager
    def finished_run(
        self, spec: OpSpec, case: Case, candidate: Candidate
    ) -> Iterator[tuple[RunOutput, tuple[float, float], Any]]:
        """Build and run; give the run, the seconds of host and kernel build, and the expected outputs."""
        data = self._case_data.obtain(spec, oracle_for(spec), case, INPUT_SEED)
        built = _require(spec, self.backend.build(spec, case, candidate, PROTOCOL))
        run = _require(spec, self.backend.run(built, case, data.input_files, PROTOCOL))
        kernel = built.handle.kernel
        try:
            yield run, (kernel.host.seconds, kernel.seconds), data.expected
        finally:
            self.backend.cleanup(run)

    def execution(self, operator: str, case_id: str, work: Callable[..., Any], count: int) -> dict[str, Any]:
        """Return CPU seconds of the baseline's execution and of the same work in numpy (medians)."""
        spec = load_operator(operator)
        case = spec.case(case_id)
        arrays = [tensors[0] for tensors in case_inputs(case, INPUT_SEED)]
        program = str(self.backend.toolchain.run_program)
        with self.finished_run(spec, case, spec.baseline) as (run, _, _):
            command = [program, str(run.handle.job.path)]
            pairs = [(_child_cpu_s(command), _own_cpu_s(work, arrays)) for _ in range(count)]
        simulator_s, numpy_s = (median(seconds) for seconds in zip(*pairs, strict=True))
        row = {"operator": operator, "case": case_id, "simulator_cpu_s": simulator_s, "numpy_cpu_s": numpy_s}
        return {**row, "ratio": simulator_s / numpy_s}


def main() -> int:
    """Measure, print, and return the exit status."""
    arguments = _parse()
    with tempfile.TemporaryDirectory(prefix="ascend-gym-speed-") as scratch:
        bench = Bench(Path(scratch))
        stages = [_staged(bench, spec, arguments.rounds) for spec in _operators(arguments)]
        with _one_core():
            execution = [bench.execution(*row, arguments.rounds) for row in ELEMENTWISE]
    report = _report(stages, execution)
    _print_stages(report["stages"])
    _print_execution(execution)
    print(json.dumps(report, indent=2))
    return 0 if all(target["met"] for target in report["targets"]) else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cann-ops", type=Path, metavar="DIR", help="a checkout of cann-ops")
    parser.add_argument("--op", nargs="+", default=list(CANN_OPS), metavar="NAME", help="its operators")
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds, at least 1")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {arguments.rounds}")
    return arguments


def _operators(arguments: argparse.Namespace) -> Iterator[OpSpec]:
    yield from list_operators()
    if arguments.cann_ops:
        for name, folder in select_operators(arguments.cann_ops.resolve(), arguments.op).items():
            yield load_operator(name, op_dir=folder)


def _staged(bench: Bench, spec: OpSpec, rounds: int) -> dict[str, Any]:
    case = min(spec.cases, key=lambda case: sum(sum(tensor_sizes_bytes(tensor)) for tensor in case.inputs))
    bench.evaluate(spec, case, spec.baseline)
    cold, changed = bench.rounds(spec, case, rounds)
    print(f"{spec.op_id}: done", file=sys.stderr)
    return {
        "operator": spec.op_id,
        "case": case.case_id,
        "cold": _medians(cold),
        "kernel_changed": _medians(changed),
    }


def _medians(rounds: Sequence[Stages]) -> dict[str, float]:
    names = asdict(rounds[0])
    row = {name: median(getattr(stages, name) for stages in rounds) for name in names}
    return {**row, "total": median(stages.total for stages in rounds)}


def _report(stages: list[dict[str, Any]], execution: list[dict[str, Any]]) -> dict[str, Any]:
    named = [row for row in stages if not row["operator"].startswith("core/")] or stages
    targets = [
        _target(
            "cold, median of the operators", median(row["cold"]["total"] for row in named), COLD_TARGET_S
        ),
        _target(
            "kernel changed, median of the operators",
            median(row["kernel_changed"]["total"] for row in named),
            KERNEL_CHANGED_TARGET_S,
        ),
        _target("largest ratio of execution to numpy", max(row["ratio"] for row in execution), NUMPY_TARGET),
    ]
    return {"targets": targets, "stages": stages, "execution": execution}


def _target(name: str, value: float, target: float) -> dict[str, Any]:
    print(f"{name}: {value:.3f}, target {target:g}", file=sys.stderr)
    return {"name": name, "value": value, "target": target, "met": value <= target}


def _print_stages(rows: list[dict[str, Any]]) -> None:
    columns = ("host", "kernel", "tiling", "run", "price", "total", "verify")
    print(f"{'ms, median':<44}{''.join(f'{name:>9}' for name in columns)}", file=sys.stderr)
    for row in rows:
        for series in ("cold", "kernel_changed"):
            cells = "".join(f"{row[series][name] * 1e3:9.0f}" for name in columns)
            print(f"{row['operator']:<28}{series:<16}{cells}", file=sys.stderr)


def _print_execution(rows: list[dict[str, Any]]) -> None:
    print(f"{'CPU ms, median':<36}{'simulator':>12}{'numpy':>12}{'ratio':>9}", file=sys.stderr)
    for row in rows:
        seconds = f"{row['simulator_cpu_s'] * 1e3:12.1f}{row['numpy_cpu_s'] * 1e3:12.1f}"
        print(f"{row['operator'] + ' ' + row['case']:<36}{seconds}{row['ratio']:9.1f}", file=sys.stderr)


@contextlib.contextmanager
def _one_core() -> Iterator[None]:
    """Keep this process, and programs that it starts itself, on one core."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _child_cpu_s(command: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _own_cpu_s(work: Callable[..., Any], arrays: Sequence[Any]) -> float:
    started_s = time.process_time()
    work(*arrays)
    return time.process_time() - started_s


def _require(spec: OpSpec, outcome: Any) -> Any:
    if isinstance(outcome, Failure):
        raise SystemExit(f"{spec.op_id}: {outcome.status.value}: {outcome.diagnostics[0]}")
    return outcome


if __name__ == "__main__":
    sys.exit(main())
