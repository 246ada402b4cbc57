"""Library calls composed of vector instructions against numpy: values, edge shapes, rounds and faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from composed_machine import DST, FAR, FLOATS, KB, OTHER, SRC, TMP, UB, bits, block, drawn, machine
from vector_machine import Array, Machine, MachineFault

__all__ = ["machine"]

Reference = Callable[[Array, Array], Array]
PAIRS: dict[str, Reference] = {
    "SwiGLU": lambda x, y: x * y / (1 + np.exp(-1.5 * y)),
    "GeGLU": lambda x, y: x * y / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3))),
    "ReGlu": lambda x, y: x * np.maximum(y, 0),
    "Fmod": np.fmod,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scratch", [0, 3000])
@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two_tensors(machine: Machine, name: str, scratch: int, dtype: str) -> None:
    count = 1000
    x, y = drawn(1, count, -3, 3, dtype), drawn(2, count, 0.5, 3, dtype)
    if name != "Fmod":
        y[::2] *= -1
    machine.reset(UB)
    machine.put(SRC, x)
    machine.put(OTHER, y)
    machine.call(f"{name} {dtype}", DST, SRC, OTHER, TMP, scratch, count)
    result = machine.view(DST, dtype, count + 8)
    tolerance = 2e-6 if dtype == "float32" else 2e-3
    expected = PAIRS[name](x.astype(float), y.astype(float))
    np.testing.assert_allclose(result[:count], expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(result[count:], 0)


def test_gated_units_issue_the_published_instructions(machine: Machine) -> None:
    machine.reset(UB)
    machine.call("GeGLU float16", DST, SRC, OTHER, TMP, 4096, 512)
    kinds = Counter(line.name for line in machine.trace() if line.name != "PipeBarrier")
    assert kinds == {"Cast": 3, "Mul": 3, "Adds": 2, "Muls": 1, "Exp": 1, "Div": 1}


def test_gated_units_refuse_a_result_over_a_source(machine: Machine) -> None:
    machine.reset(UB)
    with pytest.raises(MachineFault, match="SwiGLU: dst overlaps src"):
        machine.call("SwiGLU float32", SRC, SRC, OTHER, TMP, 4096, 64)


def test_temporary_buffers_have_a_least_size(machine: Machine) -> None:
    machine.reset(UB)
    with pytest.raises(
        MachineFault, match="the temporary buffer has 100 bytes, but the call needs at least 384"
    ):
        machine.call("ReGlu float16", DST, SRC, OTHER, TMP, 100, 64)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 16), (20, 32), (32, 16), (64, 48), (1, 16)])
@pytest.mark.parametrize(("way", "axis"), [("across", 1), ("down", 0)])
def test_cumulative_sums(machine: Machine, way: str, axis: int, shape: tuple[int, int], dtype: str) -> None:
    x = drawn(3, shape, -1, 1, dtype)
    machine.reset(UB)
    machine.put(SRC, x)
    machine.view(DST, dtype, x.size + 8)[:] = 7
    machine.call(f"CumSum {way} {dtype}", DST, FAR, SRC, *shape, TMP, 14 * KB)
    result = machine.view(DST, dtype, x.size + 8)
    tolerance = 4e-6 if dtype == "float32" else 4e-3
    expected = np.cumsum(x.astype(float), axis=axis)
    np.testing.assert_allclose(result[: x.size].reshape(shape), expected, atol=tolerance)
    np.testing.assert_allclose(machine.view(FAR, dtype, shape[1]), expected[-1], atol=tolerance)
    np.testing.assert_array_equal(result[x.size :], 7)


def test_cumulative_sums_take_whole_blocks(machine: Machine) -> None:
    machine.reset(UB)
    with pytest.raises(
        MachineFault, match="CumSum: rows of 40 bytes, expected a multiple of 32: pad them to 64"
    ):
        machine.call("CumSum across float32", DST, FAR, SRC, 4, 10, TMP, 14 * KB)


def _normalized(x: Array, gamma: Array, beta: Array, epsilon: float) -> Array:
    y = x.astype(float)
    scale = 1 / np.sqrt(y.var(axis=1, keepdims=True) + epsilon)
    return np.asarray((y - y.mean(axis=1, keepdims=True)) * scale * gamma + beta)


ROWS = [(5, 64, 5), (5, 64, 2), (3, 16, 3), (4, 208, 3), (2, 512, 2), (16, 128, 16)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("name", ["LayerNorm", "DeepNorm", "LayerNorm of rows"])
def test_layer_norms(machine: Machine, name: str, rows: tuple[int, int, int], dtype: str) -> None:
    number, columns, at_once = rows
    x = drawn(4, (number, columns), -2, 3, dtype)
    gamma, beta = drawn(5, columns, 0.5, 1.5, dtype), drawn(6, columns, -1, 1, dtype)
    machine.reset(UB)
    for place, values in ((SRC, x), (OTHER, gamma), (OTHER + 4 * KB, beta)):
        machine.put(place, values)
    variance = FAR + 4 * KB
    operands = (DST, FAR, variance, SRC, OTHER, OTHER + 4 * KB)
    machine.call(
        f"{name} {dtype}", *operands, number, columns, columns, at_once, TMP, 150 * KB, bits(1e-3, dtype)
    )
    summed = x.astype(float) * (3 if name == "DeepNorm" else 1)
    tolerance = 5e-6 if dtype == "float32" else 4e-3
    result = machine.view(DST, dtype, x.size).reshape(x.shape)
    np.testing.assert_allclose(result, _normalized(summed, gamma, beta, 1e-3), atol=tolerance, rtol=tolerance)
    plain = name == "LayerNorm of rows"
    kind = "float32" if plain else dtype
    spread = summed.var(axis=1)
    expected = 1 / np.sqrt(spread + 1e-3) if plain else spread
    np.testing.assert_allclose(machine.view(FAR, kind, number), summed.mean(axis=1), atol=tolerance)
    np.testing.assert_allclose(machine.view(variance, kind, number), expected, rtol=tolerance)


def test_layer_norm_of_rows_leaves_out_padding(machine: Machine) -> None:
    x = drawn(7, (3, 24), -2, 3, "float32")
    x[:, 20:] = 1000
    machine.reset(UB)
    machine.put(SRC, x)
    machine.put(OTHER, np.ones(24, np.float32))
    operands = (DST, FAR, FAR + 4 * KB, SRC, OTHER, OTHER + 4 * KB)
    machine.call("LayerNorm of rows float32", *operands, 3, 24, 20, 3, TMP, 8 * KB, bits(1e-3, "float32"))
    result = machine.view(DST, "float32", 72).reshape(3, 24)[:, :20]
    expected = _normalized(x[:, :20], np.ones(20), np.zeros(20), 1e-3)
    np.testing.assert_allclose(result, expected, atol=5e-6)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("rows", "basic"), [*((rows, 0) for rows in ROWS), ((8, 64, 8), 0), ((8, 64, 8), 1), ((16, 128, 16), 1)]
)
def test_rms_norm(machine: Machine, basic: int, rows: tuple[int, int, int], dtype: str) -> None:
    number, columns, at_once = rows
    x, gamma = drawn(8, (number, columns), -2, 3, dtype), drawn(9, columns, 0.5, 1.5, dtype)
    machine.reset(UB)
    machine.put(SRC, x)
    machine.put(OTHER, gamma)
    machine.call(
        f"RmsNorm {dtype}",
        DST,
        basic,
        0,
        SRC,
        OTHER,
        0,
        *(number, columns, columns, at_once, TMP, 150 * KB),
        bits(1e-3, dtype),
    )
    y = x.astype(float)
    expected = y / np.sqrt((y**2).mean(axis=1, keepdims=True) + 1e-3) * gamma
    tolerance = 2e-6 if dtype == "float32" else 2e-3
    result = machine.view(DST, dtype, x.size).reshape(x.shape)
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
def test_welford_update(machine: Machine, dtype: str) -> None:
    count = 300
    x, mean, spread = (
        drawn(10, count, -1, 1, dtype),
        drawn(11, count, -1, 1, "float32"),
        drawn(12, count, 0, 1, "float32"),
    )
    machine.reset(UB)
    for place, values in ((SRC, x), (OTHER, mean), (OTHER + 4 * KB, spread)):
        machine.put(place, values)
    machine.call(
        f"WelfordUpdate {dtype}",
        DST,
        FAR,
        OTHER,
        OTHER + 4 * KB,
        SRC,
        count,
        TMP,
        2 * KB,
        bits(0.25, "float32"),
    )
    updated = mean + (x.astype(float) - mean) * 0.25
    np.testing.assert_allclose(machine.view(DST, "float32", count), updated, atol=1e-6)
    expected = spread + (x - mean) * (x - updated)
    np.testing.assert_allclose(machine.view(FAR, "float32", count), expected, atol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("rows", "columns"), [(5, 64), (3, 16), (9, 256)])
def test_softmax_of_given_sums_and_its_logarithm(
    machine: Machine, rows: int, columns: int, dtype: str
) -> None:
    x = drawn(13, (rows, columns), -2, 3, dtype)
    powers = np.exp(x.astype(float) - x.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    tolerance = 2e-6 if dtype == "float32" else 2e-3
    sums, maxima = FAR, FAR + 4 * KB
    machine.reset(UB)
    machine.put(SRC, x)
    machine.call(f"LogSoftMax {dtype}", DST, sums, maxima, SRC, rows, columns, TMP, 60 * KB)
    result = machine.view(DST, dtype, x.size).reshape(x.shape).copy()
    np.testing.assert_allclose(result, np.log10(expected), rtol=4 * tolerance, atol=tolerance)
    machine.put(sums, np.repeat(powers.sum(axis=1), block(dtype)).astype(dtype))
    machine.put(maxima, np.repeat(x.max(axis=1), block(dtype)))
    machine.call(f"SimpleSoftMax {dtype}", DST, sums, maxima, SRC, rows, columns, TMP, 4 * KB)
    softmax = machine.view(DST, dtype, x.size).reshape(x.shape)
    np.testing.assert_allclose(softmax, expected, atol=tolerance)
    kept = softmax[::2].copy()
    machine.put(maxima, np.repeat(np.arange(rows) % 2, block(dtype)).astype(dtype))
    machine.call(
        f"AdjustSoftMaxRes {dtype}", DST, maxima, bits(1, dtype), bits(-7, dtype), rows, columns, OTHER
    )
    np.testing.assert_array_equal(softmax[1::2], -7)
    np.testing.assert_array_equal(softmax[::2], kept)
    assert machine.view(OTHER, "int32", 1)[0] == 1


def test_the_logarithm_of_softmax_of_halves_is_taken_before_it_is_rounded(machine: Machine) -> None:
    x = np.zeros((2, 32), np.float16)
    x[:, ::2] = -20  # e^-20 is no half
    machine.reset(UB)
    machine.put(SRC, x)
    machine.call("LogSoftMax float16", DST, FAR, FAR + KB, SRC, *x.shape, TMP, 8 * KB)
    expected = (x.astype(float) - np.log(16)) / np.log(10)
    result = machine.view(DST, "float16", x.size).reshape(x.shape)
    np.testing.assert_allclose(result.astype(float), expected, rtol=1e-3)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("rows", "columns", "counting", "k", "largest"),
    [
        (2, 32, 32, 8, 1),
        (3, 64, 50, 5, 0),
        (2, 96, 96, 20, 1),
        (1, 544, 540, 33, 0),
        (2, 160, 160, 160, 1),
        (1, 1024, 1024, 100, 1),
    ],
)
def test_topk(
    machine: Machine, rows: int, columns: int, counting: int, k: int, largest: int, indexed: bool, dtype: str
) -> None:
    x = np.full((rows, columns), -60000 if largest else 60000, dtype)
    x[:, :counting] = np.random.default_rng(14).permutation(rows * counting).reshape(rows, counting)
    machine.reset(UB)
    machine.put(SRC, x)
    machine.put(OTHER, np.arange(columns, dtype=np.int32) + 5)
    machine.put(OTHER + 8 * KB, np.array([0] * (rows - 1) + [1], np.uint8))
    name = "TopK indexed" if indexed else "TopK"
    operands = (DST, FAR, SRC, OTHER, OTHER + 8 * KB)
    machine.call(f"{name} {dtype}", *operands, rows, columns, counting, k, largest, TMP, 150 * KB)
    wide, narrow = -(-k // block(dtype)) * block(dtype), -(-k // 8) * 8
    values = machine.view(DST, dtype, rows * wide).reshape(rows, wide)[:, :k]
    indices = machine.view(FAR, "int32", rows * narrow).reshape(rows, narrow)[:, :k]
    order = np.argsort(-x if largest else x, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
    expected = order + 5 if indexed else order
    if indexed:
        expected[-1] = counting  # a finished row
    np.testing.assert_array_equal(indices, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("rows", "counting", "k", "largest"), [(4, 32, 5, 1), (3, 20, 7, 0)])
def test_topk_of_short_rows(
    machine: Machine, rows: int, counting: int, k: int, largest: int, dtype: str
) -> None:
    x = np.full((rows, 32), -60000 if largest else 60000, dtype)
    x[:, :counting] = np.random.default_rng(15).permutation(rows * counting).reshape(rows, counting)
    machine.reset(UB)
    machine.put(SRC, x)
    machine.call(
        f"TopK small {dtype}", DST, FAR, SRC, OTHER, OTHER, rows, 32, counting, k, largest, TMP, 8 * KB
    )
    order = np.argsort(-x if largest else x, axis=1, kind="stable")[:, :k]
    values = machine.view(DST, dtype, rows * k).reshape(rows, k)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
    np.testing.assert_array_equal(machine.view(FAR, "int32", rows * k).reshape(rows, k), order)


@pytest.mark.parametrize(
    ("inner", "counting", "k", "message"),
    [
        (32, 32, 0, "k is 0, expected at least 1"),
        (32, 32, 40, "k is 40, expected at most 32: pass no more"),
        (32, 40, 5, "n is 40, expected at most 32: pass no more"),
        (16, 16, 4, "inner is 16, expected a multiple of 32: pad it to 32"),
        (8192, 8192, 4, "inner is 8192, expected at most 4096: pass no more"),
    ],
)
def test_topk_takes_no_more_than_there_are(
    machine: Machine, inner: int, counting: int, k: int, message: str
) -> None:
    machine.reset(UB)
    with pytest.raises(MachineFault, match=f"TopK: {message}"):
        machine.call("TopK float32", DST, FAR, SRC, OTHER, OTHER, 1, inner, counting, k, 1, TMP, 8 * KB)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("number", "groups", "channels", "area"), [(2, 4, 2, 16), (1, 1, 3, 64), (3, 2, 1, 400)]
)
def test_group_norm(machine: Machine, number: int, groups: int, channels: int, area: int, dtype: str) -> None:
    x = drawn(16, (number, groups, channels, area), -2, 3, dtype)
    gamma, beta = (drawn(seed, groups * channels, 0.5, 1.5, dtype) for seed in (17, 18))
    machine.reset(UB)
    for place, values in ((SRC, x), (OTHER, gamma), (OTHER + 4 * KB, beta)):
        machine.put(place, values)
    operands = (DST, FAR, FAR + 4 * KB, SRC, OTHER, OTHER + 4 * KB)
    machine.call(
        f"GroupNorm {dtype}", *operands, number, groups, channels, area, TMP, 30 * KB, bits(1e-3, dtype)
    )
    y = x.astype(float).reshape(number * groups, -1)
    plain = _normalized(y, np.ones(1), np.zeros(1), 1e-3).reshape(x.shape)
    factor, term = (values.reshape(1, groups, channels, 1) for values in (gamma, beta))
    tolerance = 5e-6 if dtype == "float32" else 4e-3
    result = machine.view(DST, dtype, x.size).reshape(x.shape)
    np.testing.assert_allclose(result, plain * factor + term, atol=tolerance, rtol=tolerance)
    np.testing.assert_allclose(machine.view(FAR, dtype, len(y)), y.mean(axis=1), atol=tolerance)
    np.testing.assert_allclose(machine.view(FAR + 4 * KB, dtype, len(y)), y.var(axis=1), rtol=tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(16, 16), (32, 64), (64, 16)])
def test_transposition_by_a_plan(machine: Machine, shape: tuple[int, int], dtype: str) -> None:
    x = np.arange(shape[0] * shape[1]).reshape(shape).astype(dtype)
    machine.reset(UB)
    machine.put(SRC, x)
    only_matrices = 7
    machine.call(f"Transpose {dtype}", DST, SRC, *shape, only_matrices)
    np.testing.assert_array_equal(machine.view(DST, dtype, x.size).reshape(shape[::-1]), x.T)
    with pytest.raises(MachineFault, match="TRANSPOSE_ND2ND_ONLY is simulated"):
        machine.call(f"Transpose {dtype}", DST, SRC, *shape, only_matrices - 1)


def test_transposition_takes_multiples_of_sixteen(machine: Machine) -> None:
    machine.reset(UB)
    message = "Transpose: param2, the width, is 8, expected a multiple of 16: pad it to 16"
    with pytest.raises(MachineFault, match=message):
        machine.call("Transpose float32", DST, SRC, 16, 8, 7)
