"""A mixed kernel with a Matmul object on the simulator: results, prices of tile choices, and faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulated import Workbench

from ascend_gym.core.records import MeasureProtocol
from ascend_gym.core.status import Status
from npu_daemon.backends.simulator import SimulatorBackend

OPERATOR = Path(__file__).parent.parent / "operators" / "matmul_leaky"
SMALL_BLOCKS = {"BASE_M = 64": "BASE_M = 16", "BASE_N = 128": "BASE_N = 16"}
PLANNED = "GetTiling(tiling.matmul) == -1"
NO_STEPS_FUNCTION = """static bool NoSteps(TCubeTiling &plan) {
    plan.set_stepKa(1), plan.set_stepKb(1), plan.set_depthA1(1), plan.set_depthB1(1);
    return false;
}

static ge::graphStatus TilingFunc"""
ENTRY = "GET_TILING_DATA(data, tiling);"
WIDE_BLOCK = "data.matmul.baseM = 96; data.matmul.baseN = 256; data.matmul.baseK = 32;"


@pytest.fixture(scope="module")
def benches(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Workbench]:
    data = tmp_path_factory.mktemp("data")
    return {
        case: Workbench(simulator, data, "matmul_leaky", case, op_dir=OPERATOR)
        for case in ("tails", "one_block", "large")
    }


@pytest.mark.parametrize("case", ["tails", "one_block"])
def test_blocks_reach_the_vector_cores_whole(benches: dict[str, Workbench], case: str) -> None:
    assert benches[case].latency_us() > 0


def test_larger_blocks_cost_less(benches: dict[str, Workbench]) -> None:
    """Small blocks load operands more often."""
    bench = benches["tails"]
    assert bench.latency_us(tiling=SMALL_BLOCKS) > 2 * bench.latency_us()


def test_steps_and_second_buffers_hide_copies(benches: dict[str, Workbench]) -> None:
    """One block at a time in L1: its copies wait for the cube, and the cube for them."""
    without_steps = {
        "static ge::graphStatus TilingFunc": NO_STEPS_FUNCTION,
        PLANNED: f"{PLANNED} || NoSteps(tiling.matmul)",
    }
    bench = benches["large"]
    assert bench.latency_us(tiling=without_steps) > 1.1 * bench.latency_us()


def test_more_cores_share_a_large_product(benches: dict[str, Workbench]) -> None:
    """Two vector cores share a cube core: from one group to four, the cube's work is divided by four."""
    one_group = benches["large"].latency_us(tiling={"VECTOR_CORES = 8": "VECTOR_CORES = 2"})
    assert one_group / benches["large"].latency_us() == pytest.approx(4, rel=0.2)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"matmul.SetTensorB(bGm);": ""}, "SetTensorA and SetTensorB have to be called first"),
        ({"matmul.SetSingleShape(rows,": "matmul.SetSingleShape(rows + 400,"}, "out of bounds"),
        (
            {"for (int32_t block = 0; matmul.Iterate<true>(); block++)": "int32_t block = 0;"},
            "Iterate has to be called",
        ),
        ({ENTRY: f"KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY); {ENTRY}"}, "no cube core"),
        ({ENTRY: f"{ENTRY} data.matmul.dbL0C = 2; {WIDE_BLOCK}"}, "in L0C"),
        ({ENTRY: f"{ENTRY} data.matmul.depthA1 = data.matmul.depthB1 = 256;"}, "in L1"),
    ],
    ids=["no operand", "beyond the matrix", "no block", "no cube core", "beyond L0C", "beyond L1"],
)
def test_misuse_is_a_fault_that_says_what_is_wrong(
    benches: dict[str, Workbench], edit: dict[str, str], message: str
) -> None:
    result = benches["one_block"].evaluate(benches["one_block"].edited(kernel=edit))
    assert result.status is Status.RUNTIME_FAULT, [str(each) for each in result.all_diagnostics]
    assert message in str(result.all_diagnostics[0])


def test_collective_communication_is_unsupported(
    benches: dict[str, Workbench], simulator: SimulatorBackend
) -> None:
    spec = benches["one_block"].spec
    include = {'#include "lib/matmul_intf.h"': '#include "lib/matmul_intf.h"\n#include "lib/hccl/hccl.h"'}
    collective = spec.model_copy(update={"baseline": benches["one_block"].edited(kernel=include)})
    reason = simulator.supports(collective, MeasureProtocol())
    assert reason is not None
    assert "hccl" in reason.message
    assert simulator.supports(spec, MeasureProtocol()) is None
