"""Reductions against scalar numpy code: instructions with masks and strides, and calls over whole tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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

SRC, DST, WORK = 0, 40 * 1024, 48 * 1024
VALUE_INDEX, INDEX_VALUE, ONLY_VALUE, ONLY_INDEX = range(4)
TYPES = ["float16", "float32"]
MASKS = [leading_mask(64), leading_mask(128), leading_mask(3), (0x8000_0F00_0100_0001, 0x00F0_0000_0000_0001)]
STRIDES = [(1, 1, 8), (3, 1, 8), (1, 2, 17)]
EXTREMES: dict[str, Callable[..., Any]] = {"Max": max, "Min": min}
FULL_LANES = {"float16": 128, "float32": 64}


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Machine:
    runtime = ["vector_reduce", "vector_reduce_all"]
    return build_machine("reduce", runtime, request.config.cache.mkdir("vector_machine"))


def samples(dtype: str, count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0, 30, count).astype(dtype_of(dtype))


def tree(values: Sequence[Any]) -> Any:
    """Add neighbours, rounding to the type each time, until one value is left."""
    level = list(values)
    while len(level) > 1:
        level = [a + b for a, b in zip(level[::2], level[1::2], strict=True)]
    return level[0]


class Source:
    """The lanes of a source operand, read one by one."""

    def __init__(self, memory: Array, dtype: str, mask: tuple[int, int], layout: Layout) -> None:
        self.kind = dtype_of(dtype)
        self.lanes = REPEAT_BYTES // self.kind.itemsize
        self.active = active_lanes(mask, self.lanes)
        self._memory, self._layout = memory, layout

    def value(self, repeat: int, lane: int) -> Any:
        start = self._layout.lane_offset_bytes(repeat, lane, self.kind.itemsize)
        return self._memory[start : start + self.kind.itemsize].view(self.kind)[0]

    def padded(self, repeat: int, first: int, count: int) -> list[Any]:
        """Return lanes with zero in place of the inactive ones."""
        lanes = range(first, first + count)
        return [self.value(repeat, lane) if lane in self.active else self.kind.type(0) for lane in lanes]


def source_of(machine: Machine, dtype: str, mask: tuple[int, int], strides: tuple[int, int, int]) -> Source:
    machine.reset()
    machine.put(SRC, samples(dtype, 16384 // dtype_of(dtype).itemsize))
    machine.ub[DST:WORK] = 0xEE
    return Source(machine.ub.copy(), dtype, mask, Layout(SRC, strides[1], strides[2]))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("strides", STRIDES)
def test_sum_of_each_repeat(
    machine: Machine, dtype: str, mask: tuple[int, int], strides: tuple[int, int, int]
) -> None:
    source = source_of(machine, dtype, mask, strides)
    wanted = machine.ub.copy()
    machine.call(f"WholeReduceSum {dtype}", DST, SRC, *mask, 4, *strides)
    for repeat in range(4):
        out = wanted[DST:].view(source.kind)
        out[repeat * strides[0]] = tree(source.padded(repeat, 0, source.lanes))
    np.testing.assert_array_equal(machine.ub, wanted)
    assert [(line.name, line.repeats) for line in machine.trace()] == [("WholeReduceSum", 4)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["WholeReduceMax", "WholeReduceMin"])
@pytest.mark.parametrize("order", [VALUE_INDEX, INDEX_VALUE, ONLY_VALUE, ONLY_INDEX])
@pytest.mark.parametrize("mask", MASKS)
def test_extreme_of_each_repeat(
    machine: Machine, dtype: str, name: str, order: int, mask: tuple[int, int]
) -> None:
    strides = (2, 1, 9)
    source = source_of(machine, dtype, mask, strides)
    wanted = machine.ub.copy()
    machine.call(f"{name} {dtype}", DST, SRC, *mask, 4, *strides, order)
    best = EXTREMES[name[-3:]]
    size = source.kind.itemsize
    for repeat in range(4):
        value = best(source.value(repeat, lane) for lane in source.active)
        lane = next(lane for lane in source.active if source.value(repeat, lane) == value)
        bits, index = value.tobytes(), np.array(lane, f"u{size}").tobytes()
        result = [bits + index, index + bits, bits, np.uint32(lane).tobytes()][order]
        start = DST + repeat * strides[0] * len(result)
        wanted[start : start + len(result)] = np.frombuffer(result, np.uint8)
    np.testing.assert_array_equal(machine.ub, wanted)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["BlockReduceSum", "BlockReduceMax", "BlockReduceMin"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("strides", STRIDES)
def test_each_data_block(
    machine: Machine, dtype: str, name: str, mask: tuple[int, int], strides: tuple[int, int, int]
) -> None:
    source = source_of(machine, dtype, mask, strides)
    wanted = machine.ub.copy()
    machine.call(f"{name} {dtype}", DST, SRC, *mask, 3, *strides)
    per_block = BLOCK_BYTES // source.kind.itemsize
    out = wanted[DST:].view(source.kind)
    for repeat in range(3):
        for block in range(8):
            lanes = [lane for lane in source.active if lane // per_block == block]
            if not lanes:
                continue
            if name == "BlockReduceSum":
                result = tree(source.padded(repeat, block * per_block, per_block))
            else:
                result = EXTREMES[name[-3:]](source.value(repeat, lane) for lane in lanes)
            out[repeat * strides[0] * 8 + block] = result
    np.testing.assert_array_equal(machine.ub, wanted)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mask", MASKS)
def test_each_pair(machine: Machine, dtype: str, mask: tuple[int, int]) -> None:
    source = source_of(machine, dtype, mask, (2, 1, 8))
    wanted = machine.ub.copy()
    machine.call(f"PairReduceSum {dtype}", DST, SRC, *mask, 3, 2, 1, 8)
    out = wanted[DST:].view(source.kind)
    for repeat in range(3):
        for pair in {lane // 2 for lane in source.active}:
            out[repeat * 2 * (source.lanes // 2) + pair] = tree(source.padded(repeat, 2 * pair, 2))
    np.testing.assert_array_equal(machine.ub, wanted)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("blocks", "repeats"), [(1, 8), (0, 1)], ids=["all blocks", "one block, eight times"]
)
def test_repeat_sums_of_a_number_of_lanes(machine: Machine, dtype: str, blocks: int, repeats: int) -> None:
    source = source_of(machine, dtype, leading_mask(20), (1, blocks, repeats))
    machine.call(f"RepeatReduceSum {dtype}", DST, SRC, 5, 20, blocks, 1, repeats)
    sums = [tree(source.padded(repeat, 0, source.lanes)) for repeat in range(5)]
    np.testing.assert_array_equal(machine.view(DST, dtype, 5), np.array(sums))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", [1, 7, 64, 65, 128, 1000, 4099])
def test_sum_of_a_count_accumulates_repeats_in_order(machine: Machine, dtype: str, count: int) -> None:
    values = samples(dtype, count, seed=count)
    lanes = FULL_LANES[dtype]
    machine.reset()
    machine.put(SRC, values)
    machine.call(f"ReduceSum {dtype}", DST, SRC, WORK, count)
    padded = np.concatenate([values, np.zeros(-count % lanes, values.dtype)]).reshape(-1, lanes)
    total = values.dtype.type(0)
    for row in padded:
        total = total + tree(list(row))
    assert machine.view(DST, dtype, 1)[0] == total
    machine.call(f"GetAccVal {dtype}", DST + 64)
    assert machine.view(DST + 64, dtype, 1)[0] == total
    names = [line.name for line in machine.trace()]
    assert names[:3] == ["WholeReduceSum", "SetFlag", "WaitFlag"]
    assert machine.trace()[0].repeats == len(padded)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("lanes", "repeats"), [(64, 1), (64, 5), (9, 40), (64, 200), (2, 300)])
def test_sum_of_repeats(machine: Machine, dtype: str, lanes: int, repeats: int) -> None:
    stride = 1 if repeats > 100 else 8
    machine.reset()
    machine.put(SRC, np.random.default_rng(1).integers(-4, 5, 8192).astype(dtype_of(dtype)))
    source = Source(machine.ub.copy(), dtype, leading_mask(lanes), Layout(SRC, 1, stride))
    machine.call(f"ReduceSum repeats {dtype}", DST, SRC, WORK, lanes, repeats, stride)
    total = sum(float(source.value(repeat, lane)) for repeat in range(repeats) for lane in source.active)
    assert float(machine.view(DST, dtype, 1)[0]) == total


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("with_index", [0, 1])
@pytest.mark.parametrize("count", [1, 5, 64, 128, 129, 192, 1000, 8192])
def test_extreme_of_a_count(machine: Machine, dtype: str, name: str, with_index: int, count: int) -> None:
    pick = np.argmax if name == "ReduceMax" else np.argmin
    for seed in range(4):
        values = np.round(samples(dtype, count, seed=seed))  # rounding makes ties, which the first index wins
        machine.reset()
        machine.put(SRC, values)
        machine.call(f"{name} {dtype}", DST, SRC, WORK, count, with_index)
        where = int(pick(values))
        assert machine.view(DST, dtype, 1)[0] == values[where]
        index = int(machine.view(DST, f"uint{8 * values.itemsize}", 2)[1])
        assert index == (where if with_index else 0)


def test_extreme_of_strided_repeats_counts_skipped_elements(machine: Machine) -> None:
    values = samples("float32", 4096)
    values[8 * 8 * 3 + 2 + 5] = 1e6
    machine.reset()
    machine.put(SRC, values)
    machine.call("ReduceMax repeats float32", DST, SRC, WORK, 16, 30, 3, 1)
    rows = [values[repeat * 24 : repeat * 24 + 16] for repeat in range(30)]
    best = max(range(30), key=lambda repeat: float(rows[repeat].max()))
    assert machine.view(DST, "float32", 1)[0] == rows[best].max()
    assert machine.view(DST, "uint32", 2)[1] == best * 24 + int(rows[best].argmax())


def test_registers_after_a_repeat_maximum(machine: Machine) -> None:
    values = samples("float16", 512)
    machine.reset()
    machine.put(SRC, values)
    machine.call("WholeReduceMax float16", DST, SRC, *leading_mask(128), 4, 1, 1, 8, VALUE_INDEX)
    machine.call("GetReduceMaxMinCount float16", DST + 128)
    assert machine.view(DST + 128, "float16", 1)[0] == values.max()
    assert machine.view(DST + 128, "uint16", 2)[1] == values.argmax()


def test_the_extreme_over_all_repeats_of_counter_mode_is_read_back(machine: Machine) -> None:
    values = samples("float16", 300)
    machine.reset()
    machine.put(SRC, values)
    machine.call("SetMaskCount float16")
    machine.call("WholeReduceMax float16", DST, SRC, 300, 0, 1, 1, 1, 8, VALUE_INDEX)
    machine.call("GetReduceMaxMinCount float16", DST + 128)
    assert machine.view(DST + 128, "float16", 1)[0] == values.max()
    assert machine.view(DST + 128, "uint16", 2)[1] == values.argmax()


def test_a_long_maximum_is_priced_as_passes_over_partial_results(machine: Machine) -> None:
    machine.reset()
    machine.put(SRC, samples("float32", 8192))
    machine.call("ReduceMax float32", DST, SRC, WORK, 8192, 1)
    passes = [line.repeats for line in machine.trace() if line.name == "WholeReduceMax"]
    assert passes == [128, 4, 1]


def test_results_must_fit_the_unified_buffer(machine: Machine) -> None:
    machine.reset()
    with pytest.raises(MachineFault, match="runs past its buffer"):
        machine.call("WholeReduceSum float32", machine.ub.size - 8, SRC, *leading_mask(64), 3, 1, 1, 8)
    with pytest.raises(MachineFault, match="not a multiple of 8"):
        machine.call("WholeReduceMax float32", DST + 4, SRC, *leading_mask(64), 1, 1, 1, 8, VALUE_INDEX)


def test_nothing_active_writes_nothing(machine: Machine) -> None:
    machine.reset()
    machine.ub[DST:WORK] = 0xEE
    before = machine.ub.copy()
    for name in ("WholeReduceSum", "WholeReduceMax", "BlockReduceSum", "PairReduceSum"):
        machine.call(f"{name} float32", DST, SRC, 0, 0, 4, 1, 1, 8, VALUE_INDEX)
    machine.call("ReduceSum float32", DST, SRC, WORK, 0)
    machine.call("ReduceMax float32", DST, SRC, WORK, 0, 1)
    np.testing.assert_array_equal(machine.ub, before)


NO_LANES, FULL = (0, 0), leading_mask(64)
RESULT, SHARED = 32 * 1024, 48 * 1024  # where results lie, and what calls work in


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        *((f"WholeReduce{way}", (*FULL, 0, 1, 1, 8, 0)) for way in ("Sum", "Max", "Min")),
        *((f"WholeReduce{way}", (*NO_LANES, 1, 1, 1, 8, 0)) for way in ("Sum", "Max", "Min")),
        *((f"BlockReduce{way}", (*FULL, 0, 1, 1, 8)) for way in ("Sum", "Max", "Min")),
        ("PairReduceSum", (*FULL, 0, 1, 1, 8)),
        ("RepeatReduceSum", (0, 64, 1, 1, 8)),
        *((f"Reduce{way}", (SHARED, 0, 1)) for way in ("Sum", "Max", "Min")),
        ("ReduceSum repeats", (SHARED, 64, 0, 8)),
        ("ReduceMax repeats", (SHARED, 64, 0, 8, 1)),
    ],
)
def test_nothing_to_reduce_writes_nothing(machine: Machine, call: str, arguments: tuple[int, ...]) -> None:
    """Pages of these calls, constraints: a count, mask or repeats of zero are no operation on the A2."""
    machine.reset()
    machine.put(0, np.ones(1024, np.float32))
    machine.ub[RESULT:] = 0xEE
    before = machine.ub.copy()
    machine.call(f"{call} float32", RESULT, 0, *arguments)
    np.testing.assert_array_equal(machine.ub, before)
