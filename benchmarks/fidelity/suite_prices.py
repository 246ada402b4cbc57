"""Prices the operators of a suite at their largest cases, and at the prices of another commit.

Each operator's own sources run once, and their trace is kept in the cache folder; pricing it again takes
a second. The pricing program and the chip of the other commit price the same traces, so that what moved is
prices alone: not sources, cases or instruction sequences of library calls. Why an operator moved is told
by what its price would be with a mechanism as it was then.

    python benchmarks/fidelity/suite_prices.py [--suite NAME ...] [--op NAME ...] [--before COMMIT]

The answer goes to ``benchmarks/tables/suite_prices.json``, rewritten after every operator; operators that it
has at the present prices are left as they are.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import measured_tables as tables

from ascend_gym.core.config import cache_root
from ascend_gym.core.digest import digest_of
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Case, MeasureProtocol, OpSpec
from ascend_gym.core.toml_file import read_toml
from ascend_gym.core.wheel import compiler_program
from ascend_gym.suite.loader import list_operators
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.case_data import CaseDataCache
from npu_daemon.floor import floor_us
from npu_daemon.harness import harness_identity
from npu_daemon.simulator.chips import Chip, Figure, load_chip
from npu_daemon.simulator.pricing import price_trace

NAME = "suite_prices"
ROOT = Path(__file__).parents[2]
_PRICING = "npu_daemon/simulator"

_FIXED = ("launch_us", "block_start_us")
_THEN = {  # figures with which a mechanism of today does what it did then
    "code fetch": {"code_line_cycles": 720, "code_unit_cycles": 0.001, "code_turn_cycles": 0.001},
    "L2: its share, others' results": {"l2_usable_share": 1.0, "l2_dirty_bytes": 1.0},
    "HBM's queue": {"hbm_reached_share": 0.465},
    "banks, divisions": {"divide_16bit": 16.0, "divide_32bit": 16.0},
}

Row = dict[str, Any]


class Earlier:
    """The pricing program and the chip of another commit."""

    def __init__(self, commit: str, chip: str) -> None:
        folder = cache_root() / "earlier_prices" / digest_of("earlier", commit)[:16]
        self._program, self._chip = folder / "price", folder / f"{chip}.txt"
        if self._program.is_file() and self._chip.is_file():
            return
        folder.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(
            ["git", "archive", commit, _PRICING, "ascend_gym"], cwd=ROOT, capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
        sources = sorted(map(str, (folder / _PRICING / "src/price").glob("*.cpp")))
        compiler = [found] if (found := shutil.which("c++")) else [compiler_program(), "c++"]
        options = ["-std=c++20", "-O2", f"-I{folder / _PRICING / 'include'}", "-o", str(self._program)]
        subprocess.run([*compiler, *options, *sources], check=True, capture_output=True)
        names = [folder / _PRICING / "chips" / name for name in ("base/dav_2201.toml", f"{chip}.toml")]
        base, own = map(read_toml, names)
        figures = {**base["timing"], **own["timing"]}
        geometry = {**base["geometry"], **own["geometry"]}
        figures |= {name: geometry[name] for name in ("aiv_cores", "aic_cores", "l2_bytes")}
        text = "".join(f"{name} {figure['value']}\n" for name, figure in sorted(figures.items()))
        self._chip.write_text(text, encoding="utf-8")

    def launch_us(self, cores: int, names: tuple[str, ...]) -> float:
        """Return what a launch took: its fixed part, and what each core adds."""
        figures = dict(line.split() for line in self._chip.read_text("utf-8").splitlines())
        fixed, each = (sum(float(figures[name]) for name in some) for some in (_FIXED, names))
        return fixed + cores * each

    def price_us(self, trace: Path, ranges: Path) -> float | None:
        """Return the task duration of a trace, or ``None`` if that program does not know its records."""
        told = subprocess.run(
            [str(self._program), str(trace), str(self._chip), str(ranges)], capture_output=True, check=False
        )
        return float(json.loads(told.stdout)["task_us"]) if told.returncode == 0 else None


def traced(backend: SimulatorBackend, spec: OpSpec, case: Case, chip: str) -> Path:
    """Return the folder with the trace of an operator's own sources, run if it is not there.

    Raises:
        RuntimeError: they cannot be built or run.
    """
    identity = digest_of("trace", spec.baseline.digest, case.model_dump_json(), chip, tables.runtime_digest())
    folder = cache_root() / "traces_of_suites" / identity[:32]
    if (folder / "ranges").is_file():
        return folder
    protocol = MeasureProtocol(chip=chip, run_timeout_s=600.0)
    built = backend.build(spec, case, spec.baseline, protocol)
    if isinstance(built, Failure):
        raise RuntimeError(f"{spec.op_id}: {built.diagnostics[0]}")
    data = CaseDataCache(cache_root() / "suite_prices", harness_identity())
    inputs = data.obtain(spec, oracle_for(spec), case, protocol.input_seed).input_files
    run = backend.run(built, case, inputs, protocol)
    if isinstance(run, Failure):
        raise RuntimeError(f"{spec.op_id}: {run.diagnostics[0]}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trace").write_bytes(run.handle.job.trace.mapped())
    (folder / "ranges").write_text(run.handle.job.tensor_ranges, "utf-8")
    backend.cleanup(run)
    return folder


def measured(backend: SimulatorBackend, spec: OpSpec, chip: Chip, before: Earlier | None) -> Row:
    """Return the row of an operator: prices in microseconds of its largest case."""
    case = max(spec.cases, key=lambda each: each.traffic_bytes)
    folder = traced(backend, spec, case, chip.name)
    cores, cubes, task_us = _priced(backend, folder, chip)
    names = ("launch_per_cube_us" if cubes else "launch_per_block_us", "block_stagger_us")
    fixed, each = (sum(float(chip.timing[name].value) for name in some) for some in (_FIXED, names))
    row: Row = {
        "operator": spec.op_id,
        "case": case.case_id,
        "task_us": round(task_us, 2),
        "launch_us": round(fixed + cores * each, 2),
        "floor_us": round(floor_us(spec, case, chip), 2),
        "before_us": None,
    }
    earlier_us = before.price_us(folder / "trace", folder / "ranges") if before else None
    if before is None or earlier_us is None:
        return row
    row["before_us"] = round(earlier_us, 2)
    if abs(task_us / earlier_us - 1) <= tables.MOVED:
        return row
    moved = {"launch": row["launch_us"] - before.launch_us(cores, names)}
    for mechanism, figures in _THEN.items():
        timing = dict(chip.timing)
        timing |= {name: Figure(value=value, source="as it was") for name, value in figures.items()}
        then = _priced(backend, folder, chip.model_copy(update={"timing": timing}))
        moved[mechanism] = task_us - then[2]
    moved["waits at barriers, and the rest"] = task_us - earlier_us - sum(moved.values())
    change = task_us - earlier_us
    row["why"] = max(moved, key=lambda mechanism: moved[mechanism] * (1 if change > 0 else -1))
    row["moved_us"] = {mechanism: round(each_us, 2) for mechanism, each_us in moved.items()}
    return row


def _priced(backend: SimulatorBackend, folder: Path, chip: Chip) -> tuple[int, bool, float]:
    """Return the cores of a launch, whether they are cube cores, and its duration in microseconds."""
    ranges = (folder / "ranges").read_text("utf-8")
    price = price_trace(backend.toolchain, folder / "trace", chip, ranges, timeout_s=900.0)
    if isinstance(price, Failure):
        raise RuntimeError(f"{folder}: {price.diagnostics[0]}")
    cubes = any(core["kind"] == "aic" for core in price["cores"])
    cores = sum(core["kind"] == ("aic" if cubes else "aiv") for core in price["cores"])
    return cores, cubes, float(price["task_us"])


def main() -> None:
    """Measure what the file lacks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", nargs="+", default=["core"])
    parser.add_argument("--op", nargs="+", default=[], help="only these")
    parser.add_argument("--before", default="5ac3cc32", help="commit to compare with")
    parser.add_argument("--chip", default="910B2")
    arguments = parser.parse_args()
    chip = load_chip(arguments.chip).under(MeasureProtocol().convention)
    backend = SimulatorBackend(cache_root())
    before = Earlier(arguments.before, arguments.chip) if arguments.before else None
    known = tables.rows_of(NAME) if tables.is_fresh(NAME) else []
    done = {row["operator"] for row in known}
    for spec in (each for suite in arguments.suite for each in list_operators(suite)):
        if spec.op_id in done or (arguments.op and spec.name not in arguments.op):
            continue
        try:
            known.append(measured(backend, spec, chip, before))
        except RuntimeError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        tables.write(NAME, sorted(known, key=lambda row: str(row["operator"])), before=arguments.before)
        print(known[-1], file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
