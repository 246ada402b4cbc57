"""Gather, GatherMask, Brcb, Copy and progressions against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from vector_machine import (
    BLOCK_BYTES,
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

SRC, OFFSETS, DST, COUNT = 0, 24 * 1024, 40 * 1024, 63 * 1024
TYPES = ["float16", "uint16", "float32", "int32"]
FIXED = {1: (0, 2), 2: (1, 2), 3: (0, 4), 4: (1, 4), 5: (2, 4), 6: (3, 4), 7: (0, 1)}


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Machine:
    runtime = ["vector_gather", "vector_progression", "vector_elementwise"]
    return build_machine("gather", runtime, request.config.cache.mkdir("vector_machine"))


def fill(machine: Machine, dtype: str, count: int) -> Array:
    """Put distinct values into the source and a pattern into the destination."""
    values = np.arange(1, count + 1).astype(dtype_of(dtype))
    machine.reset()
    machine.ub[DST:COUNT] = 0xEE
    machine.put(SRC, values)
    return values


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", [1, 63, 128, 700])
def test_gather_of_a_count(machine: Machine, dtype: str, count: int) -> None:
    values = fill(machine, dtype, 1024)
    index = np.random.default_rng(0).integers(0, 1000, count)
    machine.put(OFFSETS, (index * values.itemsize).astype(np.uint32))
    machine.call(f"Gather {dtype}", DST, SRC, OFFSETS, 8, count)
    np.testing.assert_array_equal(machine.view(DST, dtype, count), values[index + 8 // values.itemsize])
    assert (machine.ub[DST + count * values.itemsize :][:32] == 0xEE).all()
    (line,) = machine.trace()
    assert line.operands[1] == (
        8 + int(index.min()) * values.itemsize,
        int(index.max() - index.min() + 1) * values.itemsize,
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mask", [leading_mask(7), leading_mask(128), (0x8001_0000_0F00_0001, 0x1)])
def test_gather_with_mask(machine: Machine, dtype: str, mask: tuple[int, int]) -> None:
    values = fill(machine, dtype, 1024)
    lanes = REPEAT_BYTES // values.itemsize
    index = np.random.default_rng(1).integers(0, 1024, 3 * lanes)
    machine.put(OFFSETS, (index * values.itemsize).astype(np.uint32))
    wanted = machine.ub.copy()
    machine.call(f"Gather mask {dtype}", DST, SRC, OFFSETS, 0, *mask, 3, 11)
    for repeat in range(3):
        for lane in active_lanes(mask, lanes):
            to = Layout(DST, 1, 11).lane_offset_bytes(repeat, lane, values.itemsize)
            wanted[to : to + values.itemsize] = values[index[repeat * lanes + lane]][None].view(np.uint8)
    np.testing.assert_array_equal(machine.ub, wanted)


def test_gather_checks_every_offset(machine: Machine) -> None:
    fill(machine, "float32", 64)
    machine.put(OFFSETS, np.array([0, 4, 1 << 20], np.uint32))
    with pytest.raises(MachineFault, match="Gather: touches unified buffer bytes"):
        machine.call("Gather float32", DST, SRC, OFFSETS, 0, 3)
    machine.put(OFFSETS, np.array([0, 4, 6], np.uint32))
    with pytest.raises(MachineFault, match="src address starts at unified buffer byte 6"):
        machine.call("Gather float32", DST, SRC, OFFSETS, 0, 3)


@pytest.mark.parametrize("dtype", ["uint16", "int32"])
def test_gather_of_blocks(machine: Machine, dtype: str) -> None:
    fill(machine, dtype, 2048)
    blocks = np.random.default_rng(2).integers(0, 100, 16)
    machine.put(OFFSETS, (blocks * BLOCK_BYTES).astype(np.uint32))
    wanted = machine.ub.copy()
    machine.call(f"Gatherb {dtype}", DST, SRC, OFFSETS, 2, 2, 17)
    for i, block in enumerate(blocks):
        to = DST + (i // 8 * 17 + i % 8 * 2) * BLOCK_BYTES
        wanted[to : to + BLOCK_BYTES] = wanted[SRC + block * BLOCK_BYTES :][:BLOCK_BYTES]
    np.testing.assert_array_equal(machine.ub, wanted)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("pattern", list(FIXED))
def test_fixed_patterns_over_repeats(machine: Machine, dtype: str, pattern: int) -> None:
    values = fill(machine, dtype, 2048)
    lanes = REPEAT_BYTES // values.itemsize
    machine.call(f"GatherMask fixed {dtype}", DST, SRC, pattern, 0, 0, 1, 3, 10, 0, COUNT)
    start, step = FIXED[pattern]
    per_block = BLOCK_BYTES // values.itemsize
    rows = [values[repeat * 10 * per_block :][:lanes] for repeat in range(3)]
    wanted = np.concatenate([row[start::step] for row in rows])
    assert machine.view(COUNT, "uint32", 1)[0] == wanted.size
    np.testing.assert_array_equal(machine.view(DST, dtype, wanted.size), wanted)
    assert (machine.ub[DST + wanted.nbytes :][:32] == 0xEE).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("elements", "pattern_stride"), [(70, 0), (200, 1), (5, 8)])
def test_bit_patterns_over_a_count(machine: Machine, dtype: str, elements: int, pattern_stride: int) -> None:
    values = fill(machine, dtype, 2048)
    packed = np.random.default_rng(3).integers(0, 256, 1024, dtype=np.uint8)
    machine.put(OFFSETS, packed)
    machine.call(f"GatherMask bits {dtype}", DST, SRC, OFFSETS, 1, elements, 1, 2, 60, pattern_stride, COUNT)
    per_block = BLOCK_BYTES // values.itemsize
    wanted = []
    for repeat in range(2):
        bits = np.unpackbits(packed[repeat * pattern_stride * BLOCK_BYTES :], bitorder="little")[:elements]
        wanted.append(values[repeat * 60 * per_block :][:elements][bits.astype(bool)])
    kept = np.concatenate(wanted)
    assert machine.view(COUNT, "uint32", 1)[0] == kept.size
    np.testing.assert_array_equal(machine.view(DST, dtype, kept.size), kept)
    lanes = REPEAT_BYTES // values.itemsize
    assert machine.trace()[0].repeats == 2 * -(-elements // lanes)


def test_patterns_that_do_not_exist_are_refused(machine: Machine) -> None:
    fill(machine, "float32", 64)
    with pytest.raises(MachineFault, match="built-in patterns are 1 to 7"):
        machine.call("GatherMask fixed float32", DST, SRC, 8, 0, 0, 1, 1, 8, 0, COUNT)


@pytest.mark.parametrize("dtype", TYPES)
def test_broadcast_of_elements_to_blocks(machine: Machine, dtype: str) -> None:
    values = fill(machine, dtype, 64)
    wanted = machine.ub.copy()
    machine.call(f"Brcb {dtype}", DST, SRC, 3, 2, 17)
    per_block = BLOCK_BYTES // values.itemsize
    for i in range(24):
        to = DST + (i // 8 * 17 + i % 8 * 2) * BLOCK_BYTES
        wanted[to : to + BLOCK_BYTES] = np.repeat(values[i], per_block).view(np.uint8)
    np.testing.assert_array_equal(machine.ub, wanted)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mask", [leading_mask(3), leading_mask(128), (0x8001_0000_0F00_0001, 0x1)])
def test_copy_with_mask_and_strides(machine: Machine, dtype: str, mask: tuple[int, int]) -> None:
    values = fill(machine, dtype, 4096)
    wanted = machine.ub.copy()
    machine.call(f"Copy {dtype}", DST, SRC, *mask, 3, 2, 1, 19, 8)
    for repeat in range(3):
        for lane in active_lanes(mask, REPEAT_BYTES // values.itemsize):
            to, start = (
                at.lane_offset_bytes(repeat, lane, values.itemsize)
                for at in (Layout(DST, 2, 19), Layout(SRC, 1, 8))
            )
            wanted[to : to + values.itemsize] = wanted[start : start + values.itemsize]
    np.testing.assert_array_equal(machine.ub, wanted)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int16", "int32"])
@pytest.mark.parametrize("count", [0, 1, 5, 8, 16, 17, 64, 100, 128, 129, 500])
def test_indices_of_a_count(machine: Machine, dtype: str, count: int) -> None:
    fill(machine, dtype, 8)
    machine.call(f"CreateVecIndex {dtype}", DST, 3, count)
    np.testing.assert_array_equal(machine.view(DST, dtype, count), np.arange(3, 3 + count))
    assert (machine.ub[DST + count * dtype_of(dtype).itemsize :][:32] == 0xEE).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "int16", "int32"])
@pytest.mark.parametrize("count", [3, 16, 21, 64, 100, 128, 300])
def test_progression_fills_whole_blocks(machine: Machine, dtype: str, count: int) -> None:
    fill(machine, dtype, 8)
    machine.call(f"ArithProgression {dtype}", DST, -5, 3, count)
    per_block = BLOCK_BYTES // dtype_of(dtype).itemsize
    written = count if count <= per_block else -(-count // per_block) * per_block
    np.testing.assert_array_equal(machine.view(DST, dtype, written), -5 + 3 * np.arange(written))
    assert (machine.ub[DST + written * dtype_of(dtype).itemsize :][:32] == 0xEE).all()


def test_indices_of_repeats_are_added_up_from_one_block(machine: Machine) -> None:
    fill(machine, "int32", 8)
    machine.call("CreateVecIndex repeats int32", DST, 10, 20, 3, 1, 8)
    for repeat in range(3):
        row = machine.view(DST + repeat * REPEAT_BYTES, "int32", 20)
        np.testing.assert_array_equal(row, 10 + 64 * repeat + np.arange(20))
    names = [line.name for line in machine.trace() if line.name in ("Adds", "ScalarAccess")]
    assert names == ["ScalarAccess", "Adds", "Adds", "Adds", "Adds"]


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("Gather", (SRC, OFFSETS, 0, 0)),
        ("Gather mask", (SRC, OFFSETS, 0, *leading_mask(64), 0, 8)),
        ("Gatherb", (SRC, OFFSETS, 0, 1, 8)),
        ("Brcb", (SRC, 0, 1, 8)),
        ("CreateVecIndex", (0, 0)),
        ("CreateVecIndex repeats", (0, 64, 0, 1, 8)),
        ("Copy", (SRC, *leading_mask(64), 0, 1, 1, 8, 8)),
    ],
)
def test_a_count_or_repeats_of_zero_do_nothing(
    machine: Machine, call: str, arguments: tuple[int, ...]
) -> None:
    """Pages of these calls, constraints: nothing is computed or written on the A2."""
    fill(machine, "float32", 1024)
    before = machine.ub.copy()
    machine.call(f"{call} float32", DST, *arguments)
    np.testing.assert_array_equal(machine.ub, before)


def test_blocks_gathered_with_a_stride_of_zero_lie_side_by_side(machine: Machine) -> None:
    """Page of Gatherb, constraints: a block stride of 0 counts as 1."""
    values = fill(machine, "float32", 64)
    machine.put(OFFSETS, (np.arange(8)[::-1] * BLOCK_BYTES).astype(np.uint32))
    machine.call("Gatherb float32", DST, SRC, OFFSETS, 1, 0, 8)
    np.testing.assert_array_equal(machine.view(DST, "float32", 64), values.reshape(8, 8)[::-1].ravel())
