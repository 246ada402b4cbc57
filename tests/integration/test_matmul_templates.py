"""Templates of the Matmul object on the simulator: what each makes a cube core do, and what that costs.

Shapes and plans are those of the guide's pages on each template (asc-devkit, docs/zh/guide, Matmul cases).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ascend_gym.core.protocols import Failure
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.profiling.asc_build import AscProgram, build_program
from npu_daemon.profiling.asc_program import NO_TENSORS, ProgramJob, ProgramRun, run_program
from npu_daemon.simulator.chips import load_chip
from npu_daemon.simulator.pricing import price_trace

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parent.parent / "asc" / "templates.asc"
CHIP = "910B1"
_NAMES = ("CORES", "COLUMNS", "DEPTH", "BASE_N", "STEPS", "A_BLOCKS", "RESULTS", "N_FIRST", "ACROSS")
LARGE = dict(zip(_NAMES, (24, 1280, 1024, 256, 4, 8, 1, 0, 1), strict=True))
WHOLE_DEPTH = dict(zip(_NAMES, (24, 1024, 512, 128, 8, 8, 2, 1, 1), strict=True))


def _cores(
    simulator: SimulatorBackend, folder: Path, config: str, plan: dict[str, int]
) -> list[dict[str, Any]]:
    """Return the counters of the cube cores of the product, divided among all of them."""
    folder.mkdir()
    defines = (f"CONFIG={config}", *(f"{name}={value}" for name, value in plan.items()))
    program = AscProgram(PROGRAM, defines, price_only=True)
    build = build_program(program, folder, simulator.toolchain, 60.0)
    assert not isinstance(build, Failure), build
    run = run_program(ProgramJob(program, build, folder, simulator.toolchain, load_chip(CHIP), 30.0))
    assert isinstance(run, ProgramRun), run
    trace = run.launches[0].trace
    price = price_trace(simulator.toolchain, trace, load_chip(CHIP), NO_TENSORS)
    assert not isinstance(price, Failure), price
    cores: list[dict[str, Any]] = price["cores"]
    return cores


def _mean(cores: list[dict[str, Any]], counter: str) -> float:
    return float(sum(core[counter] for core in cores)) / len(cores)


def test_several_blocks_a_copy_take_less_time_than_one(simulator: SimulatorBackend, tmp_path: Path) -> None:
    """MDL and Norm, 128 x 1024 x 30720: 46.2 us of MTE2 instead of 75.6, 53.4 us in all instead of 83.7."""
    norm, several = (_cores(simulator, tmp_path / name, f"CFG_{name}", LARGE) for name in ("NORM", "MDL"))
    blocks = LARGE["COLUMNS"] // LARGE["BASE_N"] * LARGE["DEPTH"] // 64
    assert _mean(norm, "mte2_instructions") == 2 * blocks
    assert _mean(several, "mte2_instructions") == 2 * blocks / LARGE["STEPS"]
    assert _mean(norm, "read_bytes") == _mean(several, "read_bytes")
    assert _mean(norm, "mte2_cycles") > 1.1 * _mean(several, "mte2_cycles")
    assert _mean(norm, "total_cycles") > 1.1 * _mean(several, "total_cycles")


def test_norm_keeps_what_fits_of_an_operand_that_the_next_block_needs_too(
    simulator: SimulatorBackend, tmp_path: Path
) -> None:
    """All but two buffers hold the first blocks along k; columns first, the left operand's rows stay."""
    plan = LARGE | {"N_FIRST": 1}
    cores = _cores(simulator, tmp_path / "norm", "CFG_NORM", plan)
    columns, rounds = plan["COLUMNS"] // plan["BASE_N"], plan["DEPTH"] // 64
    kept = plan["A_BLOCKS"] - 2
    assert _mean(cores, "mte2_instructions") == 2 * columns * rounds - (columns - 1) * kept


def test_a_copy_brings_blocks_across_too(simulator: SimulatorBackend, tmp_path: Path) -> None:
    """Half as many copies of the right operand where each brings two blocks of columns; only MDL does so."""
    one = WHOLE_DEPTH | {"DEPTH": 256, "STEPS": 4, "A_BLOCKS": 4}
    two = one | {"ACROSS": 2}
    single, double, norm = (
        _cores(simulator, tmp_path / name, f"CFG_{config}", plan)
        for name, config, plan in (("one", "MDL", one), ("two", "MDL", two), ("norm", "NORM", two))
    )
    blocks = one["COLUMNS"] // one["BASE_N"]
    assert _mean(single, "mte2_instructions") == 1 + blocks
    assert _mean(double, "mte2_instructions") == 1 + blocks / 2
    assert _mean(single, "read_bytes") == _mean(double, "read_bytes")
    assert _mean(norm, "mte2_instructions") == (1 + blocks) * one["STEPS"]


def test_preloading_closes_gaps_between_copies(simulator: SimulatorBackend, tmp_path: Path) -> None:
    """Columns asked for ahead, 128 x 512 x 24576: 28.5 us instead of 30.9, the same copies."""
    without, ahead = (
        _cores(simulator, tmp_path / str(option), f"GetMDLConfig(false,false,{option})", WHOLE_DEPTH)
        for option in (0, 2)
    )
    assert _mean(ahead, "mte2_instructions") == _mean(without, "mte2_instructions")
    assert _mean(ahead, "read_bytes") == _mean(without, "read_bytes")
    assert 0.9 < _mean(ahead, "total_cycles") / _mean(without, "total_cycles") < 0.99


@pytest.mark.parametrize("option", [1, 3])
def test_preloading_needs_a_second_buffer(simulator: SimulatorBackend, tmp_path: Path, option: int) -> None:
    """Rows have none in this plan, and there is nothing else to ask for ahead."""
    none, other = (
        _cores(simulator, tmp_path / str(each), f"GetMDLConfig(false,false,{each})", WHOLE_DEPTH)
        for each in (0, option)
    )
    assert _mean(none, "total_cycles") == _mean(other, "total_cycles")
