"""Kernels of cube and vector cores through the whole pipeline: results, profile, flags, prices."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulated import Workbench

from ascend_gym.core.status import Status
from npu_daemon.backends.simulator import SimulatorBackend

FOLDER = Path(__file__).parents[1] / "operators" / "mixed"
READY = "CrossCoreSetFlag<2, PIPE_FIX>(PRODUCT_READY);"


@pytest.fixture(scope="module")
def bench(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return Workbench(simulator, tmp_path_factory.mktemp("data"), "mixed", "small", op_dir=FOLDER)


def test_cube_and_vector_cores_work_together(bench: Workbench) -> None:
    result = bench.evaluate(bench.spec.baseline)
    assert result.status is Status.OK, [str(d) for d in result.all_diagnostics]
    profile = result.cases[0].profile
    assert profile is not None
    assert profile.block_dim == 4
    assert profile.aic_mac_instructions == 4 * 4  # blocks x steps of k
    assert profile.gm_to_l1_bytes == 2 * (512 * 256 + 4 * 256 * 128)
    assert profile.l0c_to_gm_bytes == profile.gm_to_ub_bytes == profile.ub_to_gm_bytes == 4 * 512 * 128
    pipes = ("mac", "mte1", "mte2", "fixpipe", "scalar")
    assert all(0 < getattr(profile, f"aic_{pipe}_ratio") < 1 for pipe in pipes)
    assert profile.aic_time < profile.task_duration_us


def test_a_flag_that_the_cube_core_never_sets_is_a_deadlock(bench: Workbench) -> None:
    result = bench.evaluate(bench.edited(kernel={READY: ""}))
    assert result.status is Status.RUNTIME_FAULT
    message = str(result.all_diagnostics[0])
    assert "waits for flag 4, which not all cores have set: 12 of 12 blocks wait" in message


def test_a_fault_of_a_cube_core_is_told_with_its_line(bench: Workbench) -> None:
    result = bench.evaluate(bench.edited(kernel={"params.m = ROWS;": "params.m = 8 * ROWS;"}))
    (diagnostic,) = result.all_diagnostics
    assert (diagnostic.call, diagnostic.block_idx, diagnostic.file) == ("Mmad", 0, "op_kernel/mixed.cpp")
    assert "dst touches L0C bytes [0, 524288), but this core has 131072" in diagnostic.message


def test_one_vector_core_for_each_cube_core(bench: Workbench) -> None:
    one_to_one = bench.edited(kernel={"KERNEL_TYPE_MIX_AIC_1_2": "KERNEL_TYPE_MIX_AIC_1_1"})
    assert bench.latency_of_us(one_to_one) > 0


def test_the_unit_flag_lets_results_leave_while_others_are_computed(bench: Workbench) -> None:
    assert bench.latency_us(kernel={"UNIT_FLAG = 0": "UNIT_FLAG = 3"}) < bench.latency_us()


def test_smaller_multiplications_cost_more(bench: Workbench) -> None:
    assert bench.latency_us(kernel={"STEP = 64": "STEP = 16"}) > bench.latency_us()
