"""Reductions of flags and products, quantization and arithmetic with another result type, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from composed_machine import DST, FLOATS, KB, OTHER, SRC, TMP, UB, bits, drawn, machine
from vector_machine import Array, Machine

__all__ = ["machine"]

SHAPES = [(2, 8), (3, 40), (5, 100), (17, 64), (4, 300), (1, 5)]


def _reduced(machine: Machine, name: str, x: Array, columns: int, pattern: str) -> Array:
    machine.reset(UB)
    machine.put(SRC, x)
    machine.call(f"{name} {pattern} {x.dtype}", DST, SRC, x.shape[0], columns, TMP, 100 * KB)
    return machine.view(DST, x.dtype, x.shape[0] if pattern == "AR" else columns)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("pattern", "axis"), [("AR", 1), ("RA", 0)])
def test_flags(machine: Machine, pattern: str, axis: int, shape: tuple[int, int], dtype: str) -> None:
    unit = 32 // np.dtype(dtype).itemsize
    padded = -(-shape[1] // unit) * unit
    flags = np.random.default_rng(1).random(shape) > 2 / shape[1]
    x = np.zeros((shape[0], padded), dtype)
    x[:, : shape[1]] = flags
    np.testing.assert_array_equal(_reduced(machine, "ReduceAll", x, shape[1], pattern), flags.all(axis=axis))
    x[:, : shape[1]] = ~flags
    np.testing.assert_array_equal(
        _reduced(machine, "ReduceAny", x, shape[1], pattern), (~flags).any(axis=axis)
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("pattern", "axis"), [("AR", 1), ("RA", 0)])
def test_products(machine: Machine, pattern: str, axis: int, shape: tuple[int, int]) -> None:
    x = np.zeros((shape[0], -(-shape[1] // 8) * 8), np.float32)
    x[:, : shape[1]] = drawn(2, shape, 0.8, 1.25, "float32")
    expected = x[:, : shape[1]].prod(axis=axis, dtype=float)
    np.testing.assert_allclose(_reduced(machine, "ReduceProd", x, shape[1], pattern), expected, rtol=1e-5)


@pytest.mark.parametrize(("count", "high"), [(300, 100), (31, 5), (300, 4000)])
def test_sum_of_differing_bits(machine: Machine, count: int, high: int) -> None:
    x, y = (np.random.default_rng(seed).integers(0, high, count).astype(np.int16) for seed in (3, 4))
    machine.reset(UB)
    machine.put(SRC, x)
    machine.put(OTHER, y)
    machine.call("ReduceXorSum", DST, SRC, OTHER, TMP, 8 * KB, count)
    assert machine.view(DST, "int16", 1)[0] == min(int((x ^ y).astype(int).sum()), 32767)


@pytest.mark.parametrize("name", ["AddReluCast", "SubReluCast"])
def test_sums_of_another_type(machine: Machine, name: str) -> None:
    x, y = drawn(8, 300, -60, 90, "float16"), drawn(9, 300, -60, 90, "float16")

    def result(to: str, of: str) -> Array:
        machine.reset(UB)
        machine.put(SRC, x.astype(of))
        machine.put(OTHER, y.astype(of))
        machine.call(f"{name} {to} {of}", DST, SRC, OTHER, 300)
        return machine.view(DST, to, 300)

    def expected(of: str) -> Array:
        left, right = x.astype(of), y.astype(of)
        return np.maximum(left + right if name == "AddReluCast" else left - right, 0)

    np.testing.assert_array_equal(result("int8", "float16"), np.clip(np.rint(expected("float16")), 0, 127))
    np.testing.assert_array_equal(result("int8", "int16"), np.clip(expected("int16"), 0, 127))
    np.testing.assert_array_equal(result("float16", "float32"), expected("float32").astype(np.float16))


def test_products_of_another_type_and_scaled_sums(machine: Machine) -> None:
    x, y = drawn(10, 300, -7, 10, "float16"), drawn(11, 300, -7, 10, "float16")
    machine.reset(UB)
    machine.put(SRC, x)
    machine.put(OTHER, y)
    machine.call("MulCast", DST, SRC, OTHER, 300)
    np.testing.assert_array_equal(machine.view(DST, "uint8", 300), np.clip(np.rint(x * y), 0, 255))
    left, right = (
        np.random.default_rng(seed).integers(-1000, 1000, 3000).astype(np.int32) for seed in (12, 13)
    )
    machine.put(SRC, left)
    machine.put(OTHER, right)
    machine.call("AddDeqRelu", DST, SRC, OTHER, 3000)
    expected = np.maximum((left + right) * 0.5, 0).astype(np.float16)
    np.testing.assert_array_equal(machine.view(DST, "float16", 3000), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_scaled_halves_added_in_float(machine: Machine, dtype: str) -> None:
    x, total = drawn(14, 300, -3, 3, "float16"), drawn(15, 300, -3, 3, dtype)
    machine.reset(UB)
    machine.put(SRC, x)
    machine.put(DST, total)
    machine.call(f"Axpy {dtype}", DST, SRC, bits(1.5, "float16"), TMP, KB, 300)
    expected = (x.astype(np.float32) * np.float32(1.5) + total.astype(np.float32)).astype(dtype)
    np.testing.assert_array_equal(machine.view(DST, dtype, 300), expected)
