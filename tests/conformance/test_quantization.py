"""Quantisation calls of the API library against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from vector_machine import Array, Machine, MachineFault, build_machine, dtype_of

DST, SRC, SCALES, TMP = 0, 13 * 1024, 26 * 1024, 46 * 1024
TMP_BYTES = 17 * 1024
RUNTIME = [
    "quantization",
    "vector_elementwise",
    "vector_cast",
    "vector_gather",
    "math_elementary",
    "math_sequences",
    "math_gamma",
    "copy",
    "atomic",
]
TYPES = [
    ("float32", "float32"),
    ("float32", "bfloat16"),
    ("bfloat16", "float32"),
    ("bfloat16", "bfloat16"),
    ("float16", "uint64"),
]


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Machine:
    return build_machine("quantization", RUNTIME, request.config.cache.mkdir("vector_machine"))


def integers(count: int) -> Array:
    return np.random.default_rng(count).integers(-999, 999, count).astype(np.int32)


def scales(dtype: str, count: int) -> tuple[Array, Array]:
    """Return the scales as the call reads them, and as floats."""
    values = (np.random.default_rng(7).integers(1, 40, count) / 64).astype(np.float32)
    if dtype == "uint64":  # the upper half has control bits that the call ignores
        return values.view(np.uint32).astype(np.uint64) | np.uint64(5 << 40), values
    return values.astype(dtype_of(dtype)), values


def padded(columns: int, dtype: str) -> int:
    """Return the length of a row of results: whole data blocks."""
    per_block = 32 // dtype_of(dtype).itemsize
    return -(-columns // per_block) * per_block


def result(machine: Machine, dtype: str, rows: int, columns: int) -> Array:
    width = padded(columns, dtype)
    return machine.view(DST, dtype, rows * width).reshape(rows, width)


@pytest.mark.parametrize(("dtype", "scale_dtype"), TYPES)
@pytest.mark.parametrize(
    ("rows", "columns", "counted"), [(4, 8, 4), (24, 128, 128), (3, 72, 65), (300, 8, 8), (1, 2056, 2050)]
)
def test_each_column_has_its_scale(
    machine: Machine, rows: int, columns: int, counted: int, dtype: str, scale_dtype: str
) -> None:
    machine.reset()
    source = integers(rows * columns)
    stored, factors = scales(scale_dtype, counted)
    machine.put(SRC, source)
    machine.put(SCALES, stored)
    call = f"AscendDequant {dtype} {scale_dtype}"
    machine.call(call, DST, SRC, SCALES, rows, columns, counted, TMP, TMP_BYTES)
    expected = (source.reshape(rows, columns)[:, :counted] * factors).astype(dtype_of(dtype))
    np.testing.assert_array_equal(result(machine, dtype, rows, columns)[:, :counted], expected)


@pytest.mark.parametrize(("dtype", "scale_dtype"), TYPES[:4])
def test_one_scale_for_all(machine: Machine, dtype: str, scale_dtype: str) -> None:
    rows, columns, counted = 5, 24, 20
    machine.reset()
    source = integers(rows * columns)
    machine.put(SRC, source)
    scale = np.array([0.375], dtype_of(scale_dtype))
    bits = int.from_bytes(scale.tobytes(), "little")
    call = f"AscendDequant scalar {dtype} {scale_dtype}"
    machine.call(call, DST, SRC, bits, rows, columns, counted, TMP, TMP_BYTES)
    expected = (source.reshape(rows, columns)[:, :counted] * np.float32(0.375)).astype(dtype_of(dtype))
    np.testing.assert_array_equal(result(machine, dtype, rows, columns)[:, :counted], expected)


def test_a_single_row_may_stand_for_many(machine: Machine) -> None:
    source = integers(32)
    stored, factors = scales("float32", 8)
    machine.reset()
    machine.put(SRC, source)
    machine.put(SCALES, stored)
    machine.call("AscendDequant float32 float32", DST, SRC, SCALES, 1, 32, 8, TMP, TMP_BYTES)
    np.testing.assert_array_equal(
        machine.view(DST, "float32", 32).reshape(4, 8), source.reshape(4, 8) * factors
    )
    machine.view(DST, "float32", 32)[:] = 7
    machine.call("AscendDequant whole rows float32 float32", DST, SRC, SCALES, 1, 32, 8, TMP, TMP_BYTES)
    np.testing.assert_array_equal(machine.view(DST, "float32", 8), source[:8] * factors)


@pytest.mark.parametrize(("dtype", "scale_dtype"), TYPES)
def test_elements_end_in_a_short_row(machine: Machine, dtype: str, scale_dtype: str) -> None:
    rows, columns, elements = 5, 16, 70
    source = integers(rows * columns)
    stored, factors = scales(scale_dtype, columns)
    machine.reset()
    machine.put(SRC, source)
    machine.put(SCALES, stored)
    call = f"AscendDequant elements {dtype} {scale_dtype}"
    machine.call(call, DST, SRC, SCALES, rows, columns, elements, TMP, 512)
    expected = (source.reshape(rows, columns) * factors).astype(dtype_of(dtype)).ravel()[:elements]
    np.testing.assert_array_equal(machine.view(DST, dtype, elements), expected)


def test_instructions_of_a_call(machine: Machine) -> None:
    """Scales, then for the rows at once: a conversion, a product for each 64 columns, a conversion."""
    machine.reset()
    machine.call("AscendDequant bfloat16 float32", DST, SRC, SCALES, 24, 128, 100, TMP, TMP_BYTES)
    steps = [(line.name, line.repeats) for line in machine.trace()]
    rows = [("Cast", 48), ("Mul", 24), ("Mul", 24), ("Cast", 48)]
    assert steps == [("Adds", 2), *rows]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((4, 8, 8, TMP, 32), "temporary buffer has 32 bytes, but the call needs at least 64"),
        ((4, 12, 8, TMP, 512), "rows of 12 elements with 8 to scale"),
        ((4, 8, 9, TMP, 512), "rows of 8 elements with 9 to scale"),
    ],
)
def test_a_wrong_shape_is_told(machine: Machine, arguments: tuple[int, ...], message: str) -> None:
    machine.reset()
    with pytest.raises(MachineFault, match=message):
        machine.call("AscendDequant float32 float32", DST, SRC, SCALES, *arguments)
