"""AscendQuant: values, instructions and faults, all of it computed in half whatever the source is."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from composed_machine import DST, FLOATS, KB, OTHER, SRC, TMP, UB, bits, drawn, machine
from vector_machine import Array, Machine, MachineFault

__all__ = ["machine"]


def _scaled(x: Array, scale: Array | float, offset: Array | float) -> Array:
    """Return the product and the sum in half, each rounded, and then integers."""
    half = np.float16
    with np.errstate(over="ignore"):
        product = np.asarray(x.astype(half) * np.asarray(scale, half), half)
        total = np.asarray(product + np.asarray(offset, half), half)
    return np.clip(np.rint(total.astype(float)), -128, 127)


def _quantized(machine: Machine, x: Array, scale: float, offset: float, scratch: int) -> Array:
    machine.reset(UB)
    machine.put(SRC, x)
    operands = (DST, SRC, TMP, scratch, bits(scale, "float32"), bits(offset, "float32"), x.size)
    machine.call(f"AscendQuant {x.dtype}", *operands)
    return machine.view(DST, "int8", x.size)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("scale", "offset"), [(0.75, 3), (1.27, 0), (0.0613, 0.3)])
def test_quantization_by_one_scale(machine: Machine, scale: float, offset: float, dtype: str) -> None:
    x = drawn(5, 640, -100, 100, dtype)
    x[:6] = 1000.3, 0.1, 12.34567, 99.97, 2049, 2051
    for scratch in (64, 2 * KB):
        result = _quantized(machine, x, scale, offset, scratch)
        np.testing.assert_array_equal(result, _scaled(x, scale, offset))


def test_floats_beyond_the_largest_half_are_clipped(machine: Machine) -> None:
    result = _quantized(machine, np.full(64, 1e5, np.float32), 0.001, 0, KB)
    np.testing.assert_array_equal(result, 127)  # and not 100


@pytest.mark.parametrize("dtype", FLOATS)
def test_quantization_by_columns(machine: Machine, dtype: str) -> None:
    x = drawn(5, (10, 64), -100, 100, dtype)
    scales, offsets = drawn(6, 64, 0.1, 1, dtype), drawn(7, 64, -5, 5, dtype)
    expected = {"columns": _scaled(x, scales, offsets), "one offset": _scaled(x, scales, -2.25)}
    for form, offset in (("columns", OTHER + KB), ("one offset", bits(-2.25, dtype))):
        for scratch in (64, KB):  # half a row at once, and all of it
            machine.reset(UB)
            for place, values in ((SRC, x), (OTHER, scales), (OTHER + KB, offsets)):
                machine.put(place, values)
            machine.call(f"AscendQuant {form} {dtype}", DST, SRC, TMP, scratch, OTHER, offset, 64, 640)
            np.testing.assert_array_equal(machine.view(DST, "int8", 640).reshape(10, 64), expected[form])
    # Factors of float are halfs afterwards, in their own place.
    np.testing.assert_array_equal(machine.view(OTHER, "float16", 64), scales.astype(np.float16))


@pytest.mark.parametrize(("dtype", "casts", "repeats"), [("float32", 2, 320), ("float16", 1, 192)])
def test_quantization_issues_the_published_instructions(
    machine: Machine, dtype: str, casts: int, repeats: int
) -> None:
    _quantized(machine, np.zeros(8192, dtype), 1, 0, 16 * KB)
    trace = [line for line in machine.trace() if line.name != "PipeBarrier"]
    assert Counter(line.name for line in trace) == {"Cast": casts, "Muls": 1, "Adds": 1}
    assert sum(line.repeats for line in trace) == repeats


@pytest.mark.parametrize(
    ("columns", "count", "message"),
    [
        (64, 100, "calCount is 100, expected a multiple of 64: pad it to 128"),
        (48, 96, "scaleCount is 48, expected a multiple of 32: pad it to 64"),
        (0, 96, "scaleCount is 0, expected at least 1"),
    ],
)
def test_quantization_by_columns_refuses(machine: Machine, columns: int, count: int, message: str) -> None:
    machine.reset(UB)
    with pytest.raises(MachineFault, match=f"AscendQuant: {message}"):
        machine.call("AscendQuant columns float32", DST, SRC, TMP, KB, OTHER, OTHER + KB, columns, count)
