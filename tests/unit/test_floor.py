"""The time that no kernel can be faster than."""

import pytest

from ascend_gym.core.records import Case, DType, TensorSpec
from ascend_gym.suite.loader import load_operator
from npu_daemon.floor import floor_us
from npu_daemon.simulator.chips import load_chip

CHIP = load_chip("910B2")
LAUNCH_US = CHIP.timing["launch_us"].value + CHIP.timing["block_start_us"].value


def _case(read_mib, written_mib, *, is_open=False):
    x, y = (
        TensorSpec(name=name, dtype=DType.INT8, shapes=((mib * 2**20,),), open=is_open and name == "y")
        for name, mib in (("x", read_mib), ("y", written_mib))
    )
    return Case(case_id="case", inputs=(x,), outputs=(y,))


@pytest.mark.parametrize(
    ("case", "reads_all_inputs", "moving_us"),
    [
        (_case(148, 1), True, 148 * 2**20 / 1480e3),  # inputs come from HBM
        (_case(1, 499), True, 500 * 2**20 / 5200e3),  # outputs go to the cache
        (_case(148, 100), False, 100 * 2**20 / 5200e3),  # inputs may be left unread
        (_case(148, 100, is_open=True), False, 0.0),  # and open outputs unwritten
    ],
)
def test_the_slower_of_memory_and_cache_bounds_a_launch(case, reads_all_inputs, moving_us):
    spec = load_operator("add").model_copy(update={"reads_all_inputs": reads_all_inputs})
    assert floor_us(spec, case, CHIP) == pytest.approx(LAUNCH_US + moving_us)
