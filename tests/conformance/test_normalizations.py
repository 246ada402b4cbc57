"""What the pages of normalizations say beside their formulas: padding, plans, buffers and extents."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from composed_machine import DST, FAR, FLOATS, KB, OTHER, SRC, TMP, UB, bits, drawn, machine
from vector_machine import Array, Machine, MachineFault

__all__ = ["machine"]

GAMMA, BETA, VARIANCE = OTHER, OTHER + 4 * KB, FAR + 4 * KB


def _deep_norm(machine: Machine, x: Array, counting: int, at_once: int) -> None:
    machine.reset(UB)
    machine.put(SRC, x)
    machine.put(GAMMA, np.ones(x.shape[1], x.dtype))
    operands = (DST, FAR, VARIANCE, SRC, GAMMA, BETA, *x.shape, counting, at_once, TMP, 150 * KB)
    machine.call(f"DeepNorm {x.dtype}", *operands, bits(1e-3, str(x.dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("padding", [0, 50])
@pytest.mark.parametrize(("columns", "counting"), [(64, 60), (208, 193), (16, 2), (512, 449)])
def test_deep_norm_leaves_padding_out(
    machine: Machine, columns: int, counting: int, padding: int, dtype: str
) -> None:
    rows = 5
    x = drawn(1, (rows, columns), -2, 3, dtype)
    x[:, counting:] = padding
    y = 3 * x[:, :counting].astype(float)
    for at_once in (2, rows):
        _deep_norm(machine, x, counting, at_once)
        tolerance = 2e-5 if dtype == "float32" else 4e-3
        np.testing.assert_allclose(
            machine.view(FAR, dtype, rows), y.mean(axis=1), rtol=tolerance, atol=tolerance
        )
        np.testing.assert_allclose(machine.view(VARIANCE, dtype, rows), y.var(axis=1), rtol=tolerance)
        expected = (y - y.mean(axis=1, keepdims=True)) / np.sqrt(y.var(axis=1, keepdims=True) + 1e-3)
        result = machine.view(DST, dtype, x.size).reshape(x.shape)[:, :counting]
        np.testing.assert_allclose(result, expected, atol=tolerance)


def test_deep_norm_issues_the_published_instructions(machine: Machine) -> None:
    _deep_norm(machine, np.ones((4, 64), np.float32), 64, 4)
    kinds = Counter(line.name for line in machine.trace() if line.repeats > 0)
    del kinds["PipeBarrier"]
    sums = kinds.pop("WholeReduceSum", 0) + kinds.pop("RepeatReduceSum", 0)
    assert sums == 4 * 2 * 2  # of each row for the mean and the variance, each in two places
    assert kinds == {"Muls": 7, "Add": 5, "Adds": 5, "Mul": 5, "Duplicate": 1, "Sqrt": 1, "Div": 1}


def test_deep_norm_takes_rows_of_up_to_2040_elements(machine: Machine) -> None:
    with pytest.raises(MachineFault, match="DeepNorm: hLength is 2048, expected at most 2040"):
        _deep_norm(machine, np.ones((1, 2048), np.float32), 2048, 1)
    with pytest.raises(MachineFault, match="DeepNorm: originalHLength is 72, expected at most 64"):
        _deep_norm(machine, np.ones((1, 64), np.float32), 72, 1)


def _normalize(machine: Machine, rows: int, columns: int, scratch: int) -> Array:
    machine.reset(UB)
    x = drawn(2, (rows, columns), -2, 3, "float32")
    mean, variance, ones, guard = 100 * KB, 104 * KB, 110 * KB, 120 * KB
    machine.put(SRC, x)
    machine.put(mean, np.ones(rows, np.float32))
    machine.put(ones, np.ones(columns, np.float32))
    machine.view(guard + scratch, "uint8", 8 * KB)[:] = 0x5A
    operands = (32 * KB, variance, mean, SRC, ones, ones + KB, rows, columns, columns, 1)
    machine.call("Normalize float32", *operands, guard, scratch, bits(1e-3, "float32"))
    np.testing.assert_array_equal(machine.view(guard + scratch, "uint8", 8 * KB), 0x5A)
    np.testing.assert_allclose(machine.view(variance, "float32", rows), 1 / np.sqrt(1.001), rtol=1e-6)
    return (machine.view(32 * KB, "float32", x.size).reshape(x.shape) - (x - 1) / np.sqrt(1.001)).copy()


def test_normalize_keeps_to_its_temporary_buffer(machine: Machine) -> None:
    np.testing.assert_allclose(_normalize(machine, 1000, 8, 4000), 0, atol=1e-6)
    with pytest.raises(MachineFault, match="has 3968 bytes, but the call needs at least 4000"):
        _normalize(machine, 1000, 8, 3968)


@pytest.mark.parametrize(("columns", "right"), [(16440, True), (16448, False)])
def test_rows_of_layer_norm_are_folded_by_one_instruction(
    machine: Machine, columns: int, right: bool
) -> None:
    x = drawn(3, columns, -2, 3, "float32")
    machine.reset(600 * KB)
    machine.put(0, x)
    mean, rstd, gamma, beta, dst, scratch = (place * KB for place in (70, 71, 72, 140, 210, 280))
    operands = (dst, mean, rstd, 0, gamma, beta, 1, columns, columns, 1, scratch, 300 * KB)
    if right:
        machine.call("LayerNorm of rows float32", *operands, bits(1e-3, "float32"))
        np.testing.assert_allclose(machine.view(mean, "float32", 1), x.mean(dtype=float), rtol=1e-5)
        return
    for name, extent in (("LayerNorm of rows", "rLengthWithPadding"), ("LayerNorm", "hLength")):
        with pytest.raises(MachineFault, match=f"LayerNorm: {extent} is 16448, expected at most 16447"):
            machine.call(f"{name} float32", *operands, bits(1e-3, "float32"))


def test_plans_lie_in_the_temporary_buffer(machine: Machine) -> None:
    machine.reset(UB)
    operands = (DST, FAR, VARIANCE, SRC, GAMMA, BETA, 4, 64, 64, 4, TMP, 2 * KB, bits(1e-3, "float16"))
    for name in ("LayerNorm", "DeepNorm"):
        with pytest.raises(
            MachineFault, match=f"{name}: the temporary buffer has 2048 bytes, .* at least 3136"
        ):
            machine.call(f"{name} float16", *operands)
    operands = (DST, FAR, VARIANCE, SRC, GAMMA, BETA, 4, 64, 72, 4, TMP, 8 * KB, bits(1e-3, "float16"))
    with pytest.raises(MachineFault, match="LayerNorm: rLength is 72, expected at most 64"):
        machine.call("LayerNorm of rows float16", *operands)


@pytest.mark.parametrize(
    ("rows", "columns", "at_once", "short", "basic", "message"),
    [
        (4, 64, 2, 128, 0, "mainBshLength is 0, expected 128"),
        (4, 64, 0, 0, 0, "mainBsLength is 0, expected at least 1"),
        (300, 8, 256, 0, 0, "mainBsLength is 256, expected at most 255"),
        (8, 72, 8, 0, 1, "hLength is 72, expected a multiple of 64: pad it to 128"),
        (9, 64, 8, 0, 1, r"bLength \* sLength is 9, expected a multiple of 8: pad it to 16"),
        (24, 64, 12, 0, 1, "mainBsLength is 12, expected a multiple of 8: pad it to 16"),
    ],
)
def test_plans_of_rms_norm_are_whole_rows(
    machine: Machine, rows: int, columns: int, at_once: int, short: int, basic: int, message: str
) -> None:
    machine.reset(UB)
    plan = (rows, columns, columns, at_once, TMP, 100 * KB, bits(1e-3, "float32"))
    with pytest.raises(MachineFault, match=f"RmsNorm: {message}"):
        machine.call("RmsNorm float32", DST, basic, short, SRC, GAMMA, 0, *plan)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("elements", "computed"), [(64, 60), (64, 41), (64, 64), (48, 1)])
def test_welford_update_in_place_keeps_the_rest(
    machine: Machine, elements: int, computed: int, dtype: str
) -> None:
    x = drawn(10, elements, -1, 1, dtype)
    mean, spread = drawn(11, elements, -1, 1, "float32"), drawn(12, elements, 0, 1, "float32")
    machine.reset(UB)
    for place, values in ((SRC, x), (GAMMA, mean), (BETA, spread)):
        machine.put(place, values)
    operands = (DST, FAR, GAMMA, BETA, SRC, computed, TMP, 2 * KB, bits(0.25, "float32"), elements)
    machine.call(f"WelfordUpdate in place {dtype}", *operands)
    updated = np.where(np.arange(elements) < computed, mean + (x.astype(float) - mean) * 0.25, mean)
    np.testing.assert_allclose(machine.view(DST, "float32", elements), updated, atol=1e-6)
    expected = np.where(np.arange(elements) < computed, spread + (x - mean) * (x - updated), spread)
    np.testing.assert_allclose(machine.view(FAR, "float32", elements), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("elements", "computed", "message"),
    [
        (56, 56, "abLength is 56, expected a multiple of 16: pad it to 64"),
        (64, 0, "abComputeLength is 0, expected at least 1"),
        (64, 65, "abComputeLength is 65, expected at most 64"),
    ],
)
def test_welford_update_refuses(machine: Machine, elements: int, computed: int, message: str) -> None:
    machine.reset(UB)
    operands = (DST, FAR, GAMMA, BETA, SRC, computed, TMP, 2 * KB, bits(0.25, "float32"), elements)
    with pytest.raises(MachineFault, match=f"WelfordUpdate: {message}"):
        machine.call("WelfordUpdate in place float16", *operands)
