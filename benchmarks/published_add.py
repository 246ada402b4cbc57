"""Prices the built-in add kernel at the settings of published measurements and prints both.

The measurements are those of the sample add_high_performance of the public asc-devkit repository
(examples/01_simd_cpp_api/05_best_practices/00_vector_compute/add_high_performance/README.md): Add of half
tensors of 8192 x 8192 on a chip with 48 vector cores at 1.85 GHz. The sample's kernel is not ours, but it
too splits the tensor at whole 512 bytes, copies tiles and adds them, so that settings and pipe times compare.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from ascend_gym.core.config import cache_root
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Candidate, Case, MeasureProtocol, OpSpec, Profile
from ascend_gym.suite.loader import load_operator
from npu_daemon.backends.simulator import SimulatorBackend

SHAPE = (8192, 8192)
BYPASS = ".SetL2CacheHint(AscendC::CacheMode::CACHE_MODE_DISABLE)"


@dataclass(frozen=True)
class Published:
    """One row of the sample's table: its settings, and task duration and pipe times in microseconds."""

    name: str
    tile_elems: int
    blocks: int
    buffers: int
    bypass_l2: bool
    task_us: float
    vec_us: float
    mte2_us: float
    mte3_us: float


ROWS = (
    Published("case 1: one core", 4096, 1, 1, False, 6909.6, 761.65, 6208.762, 2613.205),
    Published("case 2: 48 cores", 4096, 48, 1, False, 306.58, 15.885, 215.485, 54.33),
    Published("case 4: double buffer, large tiles", 16384, 48, 2, False, 264.02, 12.846, 250.528, 84.988),
    Published("case 5: inputs bypass L2", 16384, 48, 2, True, 187.68, 12.846, 175.997, 160.291),
)


def large_case(spec: OpSpec) -> Case:
    """Return the half case of ``add`` with the published shape."""
    case = next(case for case in spec.cases if case.inputs[0].dtype.value == "float16")
    resize = {"shapes": (SHAPE,)}
    return case.model_copy(
        update={
            "inputs": tuple(tensor.model_copy(update=resize) for tensor in case.inputs),
            "outputs": tuple(tensor.model_copy(update=resize) for tensor in case.outputs),
        }
    )


def with_settings(baseline: Candidate, row: Published) -> Candidate:
    """Return the built-in add with the tile, block dim and buffers of ``row``."""
    edits = {
        "ALIGN_ELEMS = 32": f"ALIGN_ELEMS = {512 // 2}",
        "TILE_LENGTH = 2048": f"TILE_LENGTH = {row.tile_elems}",
        "platform.GetCoreNumAiv()": str(row.blocks),
        "BUFFER_NUM = 1": f"BUFFER_NUM = {row.buffers}",
    }
    if row.bypass_l2:
        edits |= {
            f"{name}.SetGlobalBuffer": f"{name}{BYPASS}; {name}.SetGlobalBuffer" for name in ("x1Gm", "x2Gm")
        }
    tiling, kernel = baseline.tiling_text, baseline.kernel_text
    for old, new in edits.items():
        if old not in tiling + kernel:
            raise SystemExit(f"the add operator no longer contains {old!r}: adapt this benchmark")
        tiling, kernel = tiling.replace(old, new), kernel.replace(old, new)
    return baseline.rewritten(tiling=tiling, kernel=kernel)


def price(backend: SimulatorBackend, spec: OpSpec, row: Published, inputs: list[list[Path]]) -> Profile:
    """Return the simulator's profile for the settings of ``row``."""
    case, protocol = large_case(spec), MeasureProtocol(run_timeout_s=120.0)
    built = backend.build(spec, case, with_settings(spec.baseline, row), protocol)
    run = built if isinstance(built, Failure) else backend.run(built, case, inputs, protocol)
    if isinstance(run, Failure):
        raise SystemExit(f"{row.name}: {run.status.value}: {run.diagnostics[0]}")
    result = backend.measure(run, case, protocol)
    backend.cleanup(run)
    if isinstance(result, Failure) or result.profile is None:
        raise SystemExit(f"{row.name}: not priced")
    return result.profile


def compare(row: Published, profile: Profile) -> dict[str, float | str]:
    """Return published and simulated microseconds of one row, and the relative error of the duration."""
    return {
        "name": row.name,
        "published_task_us": row.task_us,
        "simulated_task_us": profile.task_duration_us,
        "error": profile.task_duration_us / row.task_us - 1,
        "published_vec_us": row.vec_us,
        "simulated_vec_us": profile.aiv_vec_time,
        "published_mte2_us": row.mte2_us,
        "simulated_mte2_us": profile.aiv_mte2_time,
        "published_mte3_us": row.mte3_us,
        "simulated_mte3_us": profile.aiv_mte3_time,
    }


def show(rows: list[dict[str, float | str]]) -> None:
    """Print the comparison as a table of published / simulated microseconds."""
    table = Table(title="published / simulated (us)")
    for heading in ("row", "task duration", "error", "vec", "mte2", "mte3"):
        table.add_column(heading)
    for row in rows:
        pairs = [
            f"{row[f'published_{p}_us']:.1f} / {row[f'simulated_{p}_us']:.1f}"
            for p in ("task", "vec", "mte2", "mte3")
        ]
        table.add_row(str(row["name"]), pairs[0], f"{row['error']:+.1%}", *pairs[1:])
    Console().print(table)


def main() -> None:
    """Price every row and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    arguments = parser.parse_args()
    spec = load_operator("add")
    backend = SimulatorBackend(cache_root())
    with tempfile.TemporaryDirectory() as folder:
        values = np.random.default_rng(0).random(math.prod(SHAPE), dtype=np.float32).astype(np.float16)
        files = [[Path(folder) / f"x{index}.bin"] for index in (1, 2)]
        for (path,) in files:
            values.tofile(path)
        rows = [compare(row, price(backend, spec, row, files)) for row in ROWS]
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        show(rows)


if __name__ == "__main__":
    main()
