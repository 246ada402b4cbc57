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


def _product(left, right, result, dtype=DType.FLOAT16):
    x, weight = (
        TensorSpec(name=name, dtype=dtype, shapes=(shape,)) for name, shape in (("x", left), ("w", right))
    )
    y = TensorSpec(name="y", dtype=DType.FLOAT32, shapes=(result,))
    return Case(case_id="case", inputs=(x, weight), outputs=(y,))


@pytest.mark.parametrize(
    ("op_type", "case", "multiplying_us"),
    [
        ("MatmulLeaky", _product((2048, 2048), (2048, 2048), (2048, 2048)), 2048**3 / 4096 / 24 / 1800),
        ("MatMulV2", _product((512, 4096), (4096, 2048), (512, 2048)), 512 * 2048 * 4096 / 4096 / 24 / 1800),
        ("MatMulV2", _product((4096, 512), (2048, 4096), (512, 2048)), 512 * 2048 * 4096 / 4096 / 24 / 1800),
        (
            "Matmul",
            _product((4096, 4096), (4096, 4096), (4096, 4096), DType.INT8),
            4096**3 / 8192 / 24 / 1800,
        ),
        ("Add", _product((2048, 2048), (2048, 2048), (2048, 2048)), 0.0),
        ("Matmul", _product((512, 64), (512, 64), (512, 64)), 0.0),  # element by element
        ("Matmul", _product((4, 512, 512), (4, 512, 512), (4, 512, 512)), 0.0),
    ],
)
def test_the_cube_bounds_a_product_of_matrices(op_type, case, multiplying_us):
    spec = load_operator("add").model_copy(update={"op_type": op_type})
    moving_us = max(
        sum(tensor.size_bytes for tensor in case.inputs) / 1480e3,
        sum(tensor.size_bytes for tensor in (*case.inputs, *case.outputs)) / 5200e3,
    )
    expected_us = LAUNCH_US + max(multiplying_us, moving_us)
    assert floor_us(spec, case, CHIP) == pytest.approx(expected_us)
    assert multiplying_us == 0.0 or multiplying_us > moving_us


def test_a_large_product_takes_48_us():
    spec = load_operator("add").model_copy(update={"op_type": "MatMul"})
    case = _product((2048, 2048), (2048, 2048), (2048, 2048))
    assert floor_us(spec, case, CHIP) > 48.0
