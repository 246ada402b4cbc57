"""TransDataTo5HD, Transpose and the masked multiply-add forms against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from vector_machine import BLOCK_BYTES, Array, Machine, MachineFault, build_machine, dtype_of

SRC, DST = 0, 32 * 1024


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Machine:
    runtime = ["vector_transpose", "vector_elementwise"]
    return build_machine("transpose", runtime, request.config.cache.mkdir("vector_machine"))


def fill(machine: Machine, dtype: str) -> Array:
    kind = dtype_of(dtype)
    values = np.random.default_rng(0).integers(0, 250, 8192 // kind.itemsize).astype(kind)
    machine.reset()
    machine.put(SRC, values)
    return values.reshape(-1, BLOCK_BYTES // kind.itemsize)


def blocks(start: int, stride: int) -> list[int]:
    return [start + i * stride * BLOCK_BYTES for i in range(16)]


@pytest.mark.parametrize("stride", [1, 3])
def test_sixteen_bit_blocks(machine: Machine, stride: int) -> None:
    rows = fill(machine, "float16")
    machine.call("TransDataTo5HD float16", 1, 0, 0, 0, 0, *blocks(DST, 1), *blocks(SRC, stride))
    matrix = rows[: 16 * stride : stride]
    np.testing.assert_array_equal(machine.view(DST, "float16", 256).reshape(16, 16), matrix.T)


def test_thirty_two_bit_blocks(machine: Machine) -> None:
    rows = fill(machine, "float32")
    machine.call("TransDataTo5HD float32", 1, 0, 0, 0, 0, *blocks(DST, 1), *blocks(SRC, 2))
    np.testing.assert_array_equal(machine.view(DST, "float32", 128).reshape(8, 16), rows[:32:2].T)


@pytest.mark.parametrize(("dst_high", "src_high"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_halves_of_eight_bit_blocks(machine: Machine, dst_high: int, src_high: int) -> None:
    rows = fill(machine, "uint8")
    machine.call("TransDataTo5HD uint8", 1, 0, 0, dst_high, src_high, *blocks(DST, 1), *blocks(SRC, 1))
    result = machine.view(DST, "uint8", 512).reshape(16, 32)
    taken = rows[:16, 16 * src_high : 16 * src_high + 16]
    np.testing.assert_array_equal(result[:, 16 * dst_high : 16 * dst_high + 16], taken.T)
    assert not result[:, 16 - 16 * dst_high : 32 - 16 * dst_high].any()


def test_repeats_move_both_lists(machine: Machine) -> None:
    rows = fill(machine, "float16")
    machine.call("TransDataTo5HD float16", 3, 16, 1, 0, 0, *blocks(DST, 1), *blocks(SRC, 4))
    for repeat in range(3):
        result = machine.view(DST + repeat * 512, "float16", 256).reshape(16, 16)
        np.testing.assert_array_equal(result, rows[repeat : repeat + 64 : 4].T)
    (line,) = machine.trace()
    assert (line.name, line.repeats) == ("Transpose", 6)


def test_one_repeat_starts_behind_its_strides(machine: Machine) -> None:
    rows = fill(machine, "float16")
    machine.call("TransDataTo5HD float16", 1, 2, 5, 0, 0, *blocks(DST, 1), *blocks(SRC, 1))
    result = machine.view(DST + 2 * BLOCK_BYTES, "float16", 256).reshape(16, 16)
    np.testing.assert_array_equal(result, rows[5:21].T)


def test_square_matrix_in_place(machine: Machine) -> None:
    rows = fill(machine, "float16")
    machine.call("Transpose", SRC, SRC)
    np.testing.assert_array_equal(machine.view(SRC, "float16", 256).reshape(16, 16), rows[:16].T)


def test_blocks_must_be_aligned_and_inside(machine: Machine) -> None:
    fill(machine, "float16")
    with pytest.raises(MachineFault, match="src starts at unified buffer byte 16"):
        machine.call("TransDataTo5HD float16", 1, 0, 0, 0, 0, *blocks(DST, 1), *blocks(16, 1))
    with pytest.raises(MachineFault, match="runs past its buffer"):
        machine.call("TransDataTo5HD float16", 9, 16, 300, 0, 0, *blocks(DST, 1), *blocks(SRC, 1))


def test_axpy_widens_and_keeps_inactive_lanes(machine: Machine) -> None:
    machine.reset()
    x = np.random.default_rng(1).normal(size=256).astype(np.float16)
    y = np.random.default_rng(2).normal(size=256).astype(np.float32)
    machine.put(SRC, x)
    machine.put(DST, y)
    machine.call("Axpy", DST, SRC, int(np.float16(1.5).view(np.uint16)), 10, 4)
    wanted = y.copy()
    for repeat in range(4):
        lanes = slice(64 * repeat, 64 * repeat + 10)
        wanted[lanes] += x[lanes].astype(np.float32) * np.float32(1.5)
    np.testing.assert_array_equal(machine.view(DST, "float32", 256), wanted)


def test_multiply_add_with_bits(machine: Machine) -> None:
    machine.reset()
    a, b, c = (np.random.default_rng(seed).normal(size=128).astype(np.float32) for seed in range(3))
    for offset, values in ((DST, a), (SRC, b), (SRC + 4096, c)):
        machine.put(offset, values)
    machine.call("MulAddDst", DST, SRC, SRC + 4096, 0b1011, 2)
    wanted = a.copy()
    for lane in (0, 1, 3, 64, 65, 67):
        wanted[lane] += b[lane] * c[lane]
    np.testing.assert_array_equal(machine.view(DST, "float32", 128), wanted)


@pytest.mark.parametrize(("name", "operation"), [("And uint8", np.bitwise_and), ("Or uint32", np.bitwise_or)])
def test_counted_bit_operations_count_sixteen_bits_whatever_the_type(
    machine: Machine, name: str, operation: np.ufunc
) -> None:
    words = np.random.default_rng(1).integers(0, 1 << 16, (2, 128)).astype(np.uint16)
    machine.reset()
    machine.put(SRC, words[0])
    machine.put(SRC + 256, words[1])
    machine.call(name, DST, SRC, SRC + 256, 100)
    expected = np.concatenate([operation(*words)[:100], np.zeros(28, np.uint16)])
    np.testing.assert_array_equal(machine.view(DST, "uint16", 128), expected)
