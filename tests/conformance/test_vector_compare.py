"""Compare and Select against numpy: packed bits, masks, strides, tails and the CMPMASK register."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from vector_machine import (
    REPEAT_BYTES,
    Array,
    Layout,
    Machine,
    MachineFault,
    active_lanes,
    build_machine,
    dtype_of,
    leading_mask,
)

A, B, BITS, DST = 0, 16 * 1024, 32 * 1024, 40 * 1024
MODES = [operator.lt, operator.gt, operator.eq, operator.le, operator.ge, operator.ne]
EQ = 2
REGISTER, SCALAR, TENSOR = range(3)
FLOATS = ["float16", "float32"]


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Machine:
    return build_machine("compare", ["vector_compare"], request.config.cache.mkdir("vector_machine"))


def samples(dtype: str, count: int, seed: int) -> Array:
    """Return small integers, so that many are equal, and NaN among floats."""
    values = np.random.default_rng(seed).integers(-3, 4, count).astype(dtype_of(dtype))
    if values.dtype.kind == "f":
        values[::17] = np.nan
    return values


def put_operands(machine: Machine, dtype: str, count: int) -> tuple[Array, Array]:
    a, b = samples(dtype, count, 1), samples(dtype, count, 2)
    machine.reset()
    machine.put(A, a)
    machine.put(B, b)
    return a, b


def unpacked(bits: Array, count: int) -> Array:
    return np.unpackbits(bits, bitorder="little")[:count].astype(bool)


@pytest.mark.parametrize(
    ("dtype", "mode"), [*((kind, mode) for kind in FLOATS for mode in range(6)), ("int32", EQ)]
)
def test_compare_packs_one_bit_per_element(machine: Machine, dtype: str, mode: int) -> None:
    a, b = put_operands(machine, dtype, 1024)
    machine.call(f"Compare {dtype}", BITS, A, B, mode, 1024)
    np.testing.assert_array_equal(unpacked(machine.view(BITS, "uint8", 128), 1024), MODES[mode](a, b))
    scalar = np.array(1, a.dtype)
    machine.call(f"CompareScalar {dtype}", BITS, A, int(scalar.view(f"u{a.itemsize}")), mode, 1024)
    np.testing.assert_array_equal(unpacked(machine.view(BITS, "uint8", 128), 1024), MODES[mode](a, scalar))


@pytest.mark.parametrize("dtype", FLOATS)
def test_compare_leaves_out_what_does_not_fill_a_repeat(machine: Machine, dtype: str) -> None:
    a, b = put_operands(machine, dtype, 1024)
    lanes = REPEAT_BYTES // a.itemsize
    machine.ub[BITS:DST] = 0xEE
    machine.call(f"Compare {dtype}", BITS, A, B, EQ, 3 * lanes + 5)
    bits = machine.view(BITS, "uint8", 3 * lanes // 8 + 4)
    np.testing.assert_array_equal(unpacked(bits, 3 * lanes), a[: 3 * lanes] == b[: 3 * lanes])
    assert (bits[3 * lanes // 8 :] == 0xEE).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_compare_of_strided_repeats_ignores_the_mask(machine: Machine, dtype: str) -> None:
    put_operands(machine, dtype, 4096)
    size = dtype_of(dtype).itemsize
    lanes = REPEAT_BYTES // size
    machine.call(f"Compare repeats {dtype}", BITS, A, B, 0, 3, 2, 1, 17, 9)
    bits = unpacked(machine.view(BITS, "uint8", 3 * lanes // 8), 3 * lanes)
    first, second = Layout(A, 2, 17), Layout(B, 1, 9)
    for repeat in range(3):
        for lane in range(lanes):
            left, right = (
                machine.view(layout.lane_offset_bytes(repeat, lane, size), dtype, 1)[0]
                for layout in (first, second)
            )
            assert bits[repeat * lanes + lane] == (left < right)


def test_long_comparisons_are_several_instructions(machine: Machine) -> None:
    machine.reset(192 * 1024)
    machine.call("Compare float16", 128 * 1024, 0, 0, EQ, 253 * 128)
    assert [line.repeats for line in machine.trace()] == [252, 1]
    assert machine.view(128 * 1024, "uint8", 253 * 16).all()


def test_integers_compare_only_for_equality(machine: Machine) -> None:
    machine.reset()
    with pytest.raises(MachineFault, match="only CMPMODE::EQ"):
        machine.call("Compare int32", BITS, A, B, 0, 64)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [1, 31, 64, 200, 1000])
def test_select_by_advancing_bits(machine: Machine, dtype: str, count: int) -> None:
    a, b = put_operands(machine, dtype, 1024)
    packed = np.random.default_rng(3).integers(0, 256, 128, dtype=np.uint8)
    machine.put(BITS, packed)
    chosen = unpacked(packed, count)
    machine.call(f"Select {dtype}", DST, BITS, A, B, TENSOR, count)
    np.testing.assert_array_equal(machine.view(DST, dtype, count), np.where(chosen, a[:count], b[:count]))
    assert not machine.view(DST, dtype, count + 8)[count:].any()
    scalar = np.array(7.5, a.dtype)
    machine.call(f"Select scalar {dtype}", DST, BITS, A, int(scalar.view(f"u{a.itemsize}")), count)
    np.testing.assert_array_equal(machine.view(DST, dtype, count), np.where(chosen, a[:count], scalar))


@pytest.mark.parametrize("dtype", FLOATS)
def test_select_by_register_repeats_the_same_bits(machine: Machine, dtype: str) -> None:
    a, b = put_operands(machine, dtype, 1024)
    lanes = REPEAT_BYTES // a.itemsize
    packed = np.random.default_rng(4).integers(0, 256, 16, dtype=np.uint8)
    machine.put(BITS, packed)
    chosen = np.resize(unpacked(packed, lanes), 500)
    machine.call(f"Select {dtype}", DST, BITS, A, B, REGISTER, 500)
    np.testing.assert_array_equal(machine.view(DST, dtype, 500), np.where(chosen, a[:500], b[:500]))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mask", [leading_mask(9), leading_mask(128), (0xF0F0_0001_8000_0001, 0x1)])
@pytest.mark.parametrize("mode", [REGISTER, TENSOR])
def test_select_with_mask_and_strides(machine: Machine, dtype: str, mask: tuple[int, int], mode: int) -> None:
    put_operands(machine, dtype, 4096)
    size = dtype_of(dtype).itemsize
    lanes = REPEAT_BYTES // size
    packed = np.random.default_rng(5).integers(0, 256, 64, dtype=np.uint8)
    machine.put(BITS, packed)
    machine.ub[DST:] = 0xEE
    wanted = machine.ub.copy()
    machine.call(f"Select mask {dtype}", DST, BITS, A, B, mode, *mask, 3, 2, 1, 3, 17, 9, 4)
    layouts = Layout(A, 1, 9), Layout(B, 3, 4)
    for repeat in range(3):
        for lane in active_lanes(mask, lanes):
            position = lane + (repeat * lanes if mode == TENSOR else 0)
            source = layouts[0 if packed[position // 8] >> position % 8 & 1 else 1]
            start, to = (at.lane_offset_bytes(repeat, lane, size) for at in (source, Layout(DST, 2, 17)))
            wanted[to : to + size] = wanted[start : start + size]
    np.testing.assert_array_equal(machine.ub, wanted)


@pytest.mark.parametrize("dtype", FLOATS)
def test_register_comparison_feeds_register_selection(machine: Machine, dtype: str) -> None:
    a, b = put_operands(machine, dtype, 1024)
    lanes = REPEAT_BYTES // a.itemsize
    machine.call(f"Compare register {dtype}", A, B, 0, lanes)
    machine.call("GetCmpMask", BITS)
    bits = unpacked(machine.view(BITS, "uint8", 16), lanes)
    np.testing.assert_array_equal(bits, a[:lanes] < b[:lanes])
    machine.call(f"Select register {dtype}", DST, A, B, 2)
    wanted = np.where(np.resize(bits, 2 * lanes), a[: 2 * lanes], b[: 2 * lanes])
    np.testing.assert_array_equal(machine.view(DST, dtype, 2 * lanes), wanted)


@pytest.mark.parametrize("dtype", FLOATS)
def test_scalar_of_the_register(machine: Machine, dtype: str) -> None:
    a, _ = put_operands(machine, dtype, 1024)
    lanes = REPEAT_BYTES // a.itemsize
    machine.put(BITS, np.full(32 // a.itemsize, 2.5, a.dtype))
    machine.call("SetCmpMask", BITS)
    packed = np.random.default_rng(6).integers(0, 256, 32, dtype=np.uint8)
    machine.put(BITS + 64, packed)
    machine.call(f"Select register scalar {dtype}", DST, BITS + 64, A, 2)
    wanted = np.where(unpacked(packed, 2 * lanes), a[: 2 * lanes], a.dtype.type(2.5))
    np.testing.assert_array_equal(machine.view(DST, dtype, 2 * lanes), wanted)


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("Compare", (0, 0, 0, 0)),
        ("CompareScalar", (0, 0, 0, 0)),
        ("Compare repeats", (0, 0, 0, 0, 1, 1, 8, 8)),
        ("Select", (8192, 0, 0, 2, 0)),
        ("Select scalar", (8192, 0, 0, 0)),
        ("Select mask", (8192, 0, 0, 2, *leading_mask(64), 0, 1, 1, 1, 8, 8, 8)),
    ],
)
def test_nothing_to_compare_or_select_writes_nothing(
    machine: Machine, call: str, arguments: tuple[int, ...]
) -> None:
    """Pages of both, constraints: a count or repeats of zero are no operation on the A2."""
    machine.reset()
    machine.ub[32 * 1024 :] = 0xEE
    before = machine.ub.copy()
    machine.call(f"{call} float32", 32 * 1024, *arguments)
    np.testing.assert_array_equal(machine.ub, before)
