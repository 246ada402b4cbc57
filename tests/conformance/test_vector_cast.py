"""Cast against scalar numpy code: every pair, every rounding mode, partial masks, strides and tails."""

from __future__ import annotations

from collections.abc import Callable

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

NONE, RINT, FLOOR, CEIL, ROUND, TRUNC, ODD = range(7)
DIRECTED = (RINT, FLOOR, CEIL, ROUND, TRUNC)
EXACT_PAIRS = [
    "int8>float16",
    "uint8>float16",
    "int16>float32",
    "float16>float32",
    "bfloat16>float32",
    "int32>int16",
    "int32>int64",
    "int64>int32",
]
ROUNDING_PAIRS = [
    "float16>int16",
    "float16>int32",
    "bfloat16>int32",
    "float32>int16",
    "float32>bfloat16",
    "float32>int32",
    "float32>float32",
    "float32>int64",
    "int64>float32",
]
ROUNDING_OR_NONE_PAIRS = [
    "int16>float16",
    "float16>int8",
    "float16>uint8",
    "int32>float32",
    "float32>float16",
]
CASES = [
    *((pair, NONE) for pair in (*EXACT_PAIRS, *ROUNDING_OR_NONE_PAIRS)),
    *((pair, mode) for pair in (*ROUNDING_PAIRS, *ROUNDING_OR_NONE_PAIRS) for mode in DIRECTED),
    ("float32>float16", ODD),
]
SRC, DST = 0, 32 * 1024


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Machine:
    return build_machine("cast", ["vector_cast"], request.config.cache.mkdir("vector_machine"))


def samples(dtype: str, count: int, seed: int = 0) -> Array:
    """Return values over the whole range of a type, ties and special values among them."""
    rng = np.random.default_rng(seed)
    kind = dtype_of(dtype)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        wide = rng.integers(info.min, info.max, count, dtype=kind, endpoint=True)
        shift = rng.integers(0, info.bits, count, dtype=kind)
        return np.concatenate([np.array([info.min, info.max, 0, 1], kind), wide >> shift])[:count]
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        -2.5,
        127.5,
        255.5,
        32767.5,
        -128.5,
        2.0**31,
    ]
    special += [
        65504.0,
        65519.0,
        65520.0,
        65536.0,
        1e6,
        -1e6,
        2.0**-24,
        2.0**-25,
        3e-8,
        -3e-8,
        3.4e38,
        -3.4e38,
        2.0**63,
    ]
    spread = rng.standard_normal(count) * 2.0 ** rng.integers(-30, 34, count)
    halves = rng.integers(-300, 300, count) + rng.choice([0.0, 0.25, 0.5, 0.75], count)
    with np.errstate(over="ignore"):
        return np.concatenate([np.array(special), np.stack([spread, halves], 1).ravel()])[:count].astype(kind)


def round_whole(value: float, mode: int) -> float:
    if mode == ROUND:
        return float(np.copysign(np.floor(abs(value) + 0.5), value))
    return float({NONE: np.rint, RINT: np.rint, FLOOR: np.floor, CEIL: np.ceil, TRUNC: np.trunc}[mode](value))


def to_integer(value: float, mode: int, kind: np.dtype[np.int64]) -> int:
    info = np.iinfo(kind)
    if np.isnan(value):
        return 0
    if np.isinf(value):
        return int(info.max if value > 0 else info.min)
    return min(max(int(round_whole(value, mode)), int(info.min)), int(info.max))


def neighbours(kind: np.dtype[np.float32]) -> Callable[[int | float], tuple[float, float]]:
    """Return a function giving the representable values around an exact number."""
    if kind.itemsize == 4:

        def around(exact: int | float) -> tuple[float, float]:
            near = np.float32(exact)
            below = near if int(near) <= exact else np.nextafter(near, np.float32(-np.inf))
            above = near if int(near) >= exact else np.nextafter(near, np.float32(np.inf))
            return float(below), float(above)

        return around
    with np.errstate(invalid="ignore"):
        patterns = np.arange(1 << 16, dtype=np.uint16).view(kind).astype(np.float64)
    table = np.unique(patterns[~np.isnan(patterns)])

    def search(exact: int | float) -> tuple[float, float]:
        above = int(np.searchsorted(table, exact))
        return float(table[above if table[above] == exact else above - 1]), float(table[above])

    return search


def pick(exact: int | float, below: float, above: float, mode: int, kind: np.dtype[np.float32]) -> float:
    """Choose between the two representable neighbours of an exact number."""
    if below == above or mode == FLOOR:
        return below
    if mode == CEIL:
        return above
    towards_zero, away = (below, above) if exact > 0 else (above, below)
    if mode == TRUNC:
        return towards_zero
    bits = np.array([towards_zero], np.float64).astype(kind).view(f"u{kind.itemsize}")[0]
    if mode == ODD:
        return towards_zero if bits & 1 else away
    overflow = 2.0 ** (16 if kind == np.float16 else 128)
    ends = [abs(end) if np.isfinite(end) else overflow for end in (towards_zero, away)]
    low, high = abs(exact) - ends[0], ends[1] - abs(exact)
    if low != high:
        return towards_zero if low < high else away
    return away if mode == ROUND or bits & 1 else towards_zero


def expected(values: Array, target: str, mode: int) -> Array:
    """Return the documented conversion of each value."""
    kind, source = dtype_of(target), values.dtype
    floating = source.kind not in "iu"
    if kind.kind in "iu":
        if floating:
            return np.array([to_integer(float(value), mode, kind) for value in values], kind)
        info = np.iinfo(kind)
        return np.array([min(max(int(value), int(info.min)), int(info.max)) for value in values], kind)
    if floating and source == kind:
        return np.array([round_whole(float(value), mode) for value in values], kind)
    around = neighbours(kind)
    result = np.empty(values.size, kind)
    for i, value in enumerate(values):
        exact = float(value) if floating else int(value)
        widening = floating and kind.itemsize > source.itemsize
        special = floating and not np.isfinite(exact)
        result[i] = (
            value if widening or special else np.copysign(pick(exact, *around(exact), mode, kind), exact)
        )
    return result


def assert_same(actual: Array, wanted: Array) -> None:
    if actual.dtype.kind in "iu":
        np.testing.assert_array_equal(actual, wanted)
    else:
        np.testing.assert_array_equal(actual.astype(np.float64), wanted.astype(np.float64))


@pytest.mark.parametrize(("pair", "mode"), CASES)
def test_first_elements(machine: Machine, pair: str, mode: int) -> None:
    source, target = pair.split(">")
    values = samples(source, 333)
    machine.reset()
    machine.put(SRC, values)
    machine.call(f"count {pair}", DST, SRC, mode, values.size)
    assert_same(machine.view(DST, target, values.size), expected(values, target, mode))
    assert not machine.view(DST, target, values.size + 8)[values.size :].astype(np.float64).any()


@pytest.mark.parametrize(
    "pair", ["float16>float32", "float32>float16", "int8>float16", "int64>int32", "float32>int32"]
)
@pytest.mark.parametrize(
    "mask", [leading_mask(5), leading_mask(64), (0xA5A5_5A5A_F00F_1234, 0x8000_0001_0000_FFFF)]
)
@pytest.mark.parametrize("strides", [(1, 1, 8, 8), (2, 1, 9, 4), (1, 3, 8, 0)])
def test_masked_repeats(
    machine: Machine, pair: str, mask: tuple[int, int], strides: tuple[int, int, int, int]
) -> None:
    source, target = pair.split(">")
    mode = NONE if pair in EXACT_PAIRS else RINT
    sizes = dtype_of(target).itemsize, dtype_of(source).itemsize
    lanes = REPEAT_BYTES // max(sizes)
    layouts = Layout(DST, strides[0], strides[2]), Layout(SRC, strides[1], strides[3])
    machine.reset()
    machine.put(SRC, samples(source, 2048))
    before = machine.ub.copy()
    machine.call(f"mask {pair}", DST, SRC, mode, *mask, 3, *strides)
    wanted = before.copy()
    for repeat in range(3):
        for lane in active_lanes(mask, lanes):
            to, start = (
                layout.lane_offset_bytes(repeat, lane, size)
                for layout, size in zip(layouts, sizes, strict=True)
            )
            value = before[start : start + sizes[1]].view(dtype_of(source))
            wanted[to : to + sizes[0]] = expected(value, target, mode).view(np.uint8)
    np.testing.assert_array_equal(machine.ub, wanted)


def test_number_of_lanes_means_the_leading_ones(machine: Machine) -> None:
    values = samples("float16", 64)
    machine.reset()
    machine.put(SRC, values)
    machine.call("lanes float16>float32", DST, SRC, NONE, 7, 1, 1, 1, 8, 4)
    assert_same(machine.view(DST, "float32", 7), values[:7])
    assert not machine.view(DST + 28, "uint8", 256).any()


def test_price_follows_the_wider_type(machine: Machine) -> None:
    machine.reset()
    machine.call("count float16>float32", DST, SRC, NONE, 65)
    machine.call("count float16>int8", DST, SRC, NONE, 65)
    wide, narrow = machine.trace()
    assert (wide.name, wide.dtype_bytes, wide.repeats) == ("Cast", 4, 2)
    assert wide.operands == ((DST, 260), (SRC, 130))
    assert (narrow.dtype_bytes, narrow.repeats) == (2, 1)


def test_scaled_conversion_needs_its_scale(machine: Machine) -> None:
    values = np.array([0, 1, -7, 1000, 2**31 - 1, -(2**31)], np.int32)
    machine.reset()
    machine.put(SRC, values)
    scale = np.float16(2**-10)
    machine.call("SetDeqScale", int(scale.view(np.uint16)))
    machine.call("count int32>float16", DST, SRC, NONE, values.size)
    with np.errstate(over="ignore"):
        wanted = (values * np.float64(scale)).astype(np.float16)
    assert_same(machine.view(DST, "float16", values.size), wanted)


@pytest.mark.parametrize(
    ("pair", "mode"), [("float16>float32", RINT), ("float32>int32", NONE), ("float32>int32", ODD)]
)
def test_modes_that_do_not_exist_are_refused(machine: Machine, pair: str, mode: int) -> None:
    machine.reset()
    with pytest.raises(MachineFault, match="CAST_"):
        machine.call(f"count {pair}", DST, SRC, mode, 8)


def test_operands_must_be_aligned_and_inside(machine: Machine) -> None:
    machine.reset()
    with pytest.raises(MachineFault, match="dst starts at unified buffer byte 32772"):
        machine.call("count float16>float32", DST + 4, SRC, NONE, 8)
    with pytest.raises(MachineFault, match="runs past its buffer"):
        machine.call("count float16>float32", machine.ub.size - 32, SRC, NONE, 9)


ROUNDED = {NONE: np.rint, RINT: np.rint, FLOOR: np.floor, CEIL: np.ceil, TRUNC: np.trunc}


@pytest.mark.parametrize("mode", [*ROUNDED, ROUND])
@pytest.mark.parametrize("count", [2, 6, 130])
def test_half_becomes_four_bits_two_a_byte(machine: Machine, mode: int, count: int) -> None:
    machine.reset()
    values = np.random.default_rng(count).uniform(-9.0, 9.0, count).round(1).astype(np.float16)
    values[:1] = 2.5
    before = np.full(count // 2 + 1, 0xA5, np.uint8)
    machine.put(SRC, values)
    machine.put(DST, before)
    machine.call("to int4", DST, SRC, mode, count)
    wide = values.astype(np.float64)
    away = np.copysign(np.floor(np.abs(wide) + 0.5), wide)
    whole = np.clip(away if mode == ROUND else ROUNDED[mode](wide), -8, 7).astype(int) & 15
    expected = before.astype(int)
    for index, bits in enumerate(whole.tolist()):
        shift = 4 * (index % 2)
        expected[index // 2] = expected[index // 2] & ~(15 << shift) | bits << shift
    assert machine.view(DST, "uint8", len(before)).tolist() == expected.tolist()
    (line,) = machine.trace()
    assert (line.name, line.repeats) == ("Cast", -(-count // 128))


def test_an_offset_in_global_memory_of_four_bits_counts_elements(machine: Machine) -> None:
    machine.reset()
    machine.call("global offset int4", DST, 24)
    assert machine.view(DST, "int32", 2).tolist() == [12, 40]  # bytes, and elements that are left


def test_four_bits_become_half(machine: Machine) -> None:
    machine.reset()
    machine.put(SRC, np.array([0x10, 0x32, 0x87, 0xF9], np.uint8))
    machine.call("from int4", DST, SRC, NONE, 8)
    assert machine.view(DST, "float16", 9).tolist() == [0, 1, 2, 3, 7, -8, -7, -1, 0]
    with pytest.raises(MachineFault, match="expected an even count"):
        machine.call("from int4", DST, SRC, NONE, 7)


def test_four_bits_take_no_other_rounding_mode(machine: Machine) -> None:
    with pytest.raises(MachineFault, match="use CAST_NONE"):
        machine.call("from int4", DST, SRC, RINT, 8)
    with pytest.raises(MachineFault, match="CAST_ODD"):
        machine.call("to int4", DST, SRC, ODD, 8)
