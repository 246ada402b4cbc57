"""Instructions of the cube core against scalar expectations: layouts, strides, tails, element types."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from vector_machine import Machine, MachineFault, build_machine, dtype_of

Array = npt.NDArray[Any]
L1, L0A, L0B, L0C, BIAS, GM = 0, 524288, 589824, 655360, 786432, 1 << 20
ARENA_BYTES = 2 << 20
BLOCK, FRACTAL, SIDE = 32, 512, 16
POISON = 0xA5
RUNTIME = ("cube_copy", "copy", "cube_load", "mmad", "fixpipe", "gemm", "atomic")
MODES = {
    name: mode for mode, name in enumerate(("none", "f16", "bf16", "deq", "vdeq", "b8", "vb8", "req", "vreq"))
}


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest) -> Machine:
    return build_machine("cube", RUNTIME, request.config.cache.mkdir("vector_machine"))


@pytest.fixture
def machine(built: Machine) -> Machine:
    machine = built
    machine.reset(ARENA_BYTES)
    machine.ub[:] = POISON
    machine.call("start", 1)
    return machine


def random(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    values = np.random.default_rng(seed).integers(-8, 9, shape)
    return np.asarray(values if "int" in dtype else values / 4).astype(dtype_of(dtype))


def up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def lanes_of(matrix: Array) -> int:
    return BLOCK // matrix.dtype.itemsize


def left_fractals(matrix: Array) -> Array:
    """Rows in fractals of 16 rows by 32 bytes, those of one row of fractals one after another (L0A)."""
    lanes = lanes_of(matrix)
    rows, columns = up(matrix.shape[0], SIDE), up(matrix.shape[1], lanes)
    padded = np.zeros((rows, columns), matrix.dtype)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return padded.reshape(rows // SIDE, SIDE, columns // lanes, lanes).transpose(0, 2, 1, 3).ravel()


def right_fractals(matrix: Array) -> Array:
    """Columns in fractals of 16 columns by 32 bytes along k, those of the same k one after another (L0B)."""
    lanes = lanes_of(matrix)
    rows, columns = up(matrix.shape[0], lanes), up(matrix.shape[1], SIDE)
    padded = np.zeros((rows, columns), matrix.dtype)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return padded.reshape(rows // lanes, lanes, columns // SIDE, SIDE).transpose(0, 2, 3, 1).ravel()


def result_fractals(matrix: Array) -> Array:
    """Results in fractals of 16 by 16, those of one column of fractals one after another (L0C)."""
    rows, columns = up(matrix.shape[0], SIDE), up(matrix.shape[1], SIDE)
    padded = np.zeros((rows, columns), matrix.dtype)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return padded.reshape(rows, columns // SIDE, SIDE).transpose(1, 0, 2).ravel()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
@pytest.mark.parametrize(
    ("rows", "columns", "row_length"), [(16, 32, 32), (17, 20, 37), (1, 5, 5), (33, 64, 100)]
)
def test_matrices_are_copied_as_columns_of_blocks(
    machine: Machine, dtype: str, rows: int, columns: int, row_length: int
) -> None:
    source = random(dtype, (2 * rows, row_length))
    machine.put(GM, source)
    machine.call("put_gm", source.nbytes)
    lanes, column_stride = lanes_of(source), up(rows, SIDE)
    matrix_stride = up(columns, lanes) * column_stride
    between = rows * row_length
    machine.call(f"nd2nz {dtype}", 2, rows, columns, between, row_length, column_stride, 1, matrix_stride, L1)
    expected = np.full(2 * matrix_stride * source.itemsize, POISON, np.uint8)
    view = expected.view(source.dtype)
    for matrix in range(2):
        for row in range(rows):
            for column in range(up(columns, lanes)):
                block, lane = divmod(column, lanes)
                at = matrix * matrix_stride + (block * column_stride + row) * lanes + lane
                view[at] = source[matrix * rows + row, column] if column < columns else 0
    assert np.array_equal(machine.ub[L1 : L1 + expected.size], expected)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(("memory", "offset"), [(0, L0A), (1, L0B)])
def test_fractals_are_loaded_with_strides(
    machine: Machine, transpose: bool, backwards: bool, memory: int, offset: int
) -> None:
    source = random("float16", (12, SIDE, SIDE))
    machine.put(L1, source)
    start, repeats, stride, gap = (9, 4, 2, 1) if backwards else (1, 4, 3, 2)
    machine.call("load2d float16", memory, 0, start, repeats, stride, gap, transpose, backwards, 0)
    expected = np.full(((repeats - 1) * (gap + 1) + 1, FRACTAL), POISON, np.uint8)
    for repeat in range(repeats):
        fractal = source[start + (-stride if backwards else stride) * repeat]
        expected[repeat * (gap + 1)] = (fractal.T if transpose else fractal).copy().view(np.uint8).ravel()
    assert np.array_equal(machine.ub[offset : offset + expected.size], expected.ravel())


@pytest.mark.parametrize(("dtype", "side"), [("int8", 32), ("float16", 16), ("float32", 16)])
def test_squares_are_transposed(machine: Machine, dtype: str, side: int) -> None:
    squares = random(dtype, (3, side, side))
    lanes = lanes_of(squares)
    stored = squares.reshape(3, side // SIDE, SIDE, side // lanes, lanes).transpose(0, 1, 3, 2, 4)
    machine.put(L1, stored)
    fractals = 1 if dtype == "float16" else 2
    machine.call(f"transposed {dtype}", 1, 0, 3, 1, 2 * fractals - 1, 1)
    for index, square in enumerate(squares):
        flipped = square.T.reshape(side // SIDE, SIDE, side // lanes, lanes).transpose(0, 2, 1, 3)
        for fractal in range(fractals):
            found = machine.view(
                L0B + (index * 2 * fractals + fractal * 2) * FRACTAL, dtype, FRACTAL // squares.itemsize
            )
            assert np.array_equal(found, flipped.reshape(fractals, -1)[fractal])


def patches(
    feature_map: Array, filter_: tuple[int, int], stride: int, dilation: int, pads: tuple[int, ...]
) -> Array:
    """Return the matrix of a convolution: positions by (channel block, filter row and column, channel)."""
    blocks, height, width, lanes = feature_map.shape
    left, right, top, bottom = pads
    out_height = (height + top + bottom - (filter_[0] - 1) * dilation - 1) // stride + 1
    out_width = (width + left + right - (filter_[1] - 1) * dilation - 1) // stride + 1
    matrix = np.zeros((out_height * out_width, blocks, *filter_, lanes), feature_map.dtype)
    for position in range(out_height * out_width):
        for row in range(filter_[0]):
            for column in range(filter_[1]):
                y = position // out_width * stride + row * dilation - top
                x = position % out_width * stride + column * dilation - left
                if 0 <= y < height and 0 <= x < width:
                    matrix[position, :, row, column] = feature_map[:, y, x]
    return matrix.reshape(out_height * out_width, -1)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("kind", ["left", "transposed", "right"])
@pytest.mark.parametrize(
    ("filter_", "stride", "dilation", "pads"),
    [((1, 1), 1, 1, (0, 0, 0, 0)), ((3, 2), 1, 1, (1, 0, 1, 1)), ((2, 2), 2, 2, (1, 1, 0, 1))],
)
@pytest.mark.parametrize("packed", [False, True])
def test_the_matrix_of_a_convolution_is_loaded(
    machine: Machine,
    packed: bool,
    dtype: str,
    kind: str,
    filter_: tuple[int, int],
    stride: int,
    dilation: int,
    pads: tuple[int, ...],
) -> None:
    lanes = BLOCK // dtype_of(dtype).itemsize
    height, width, blocks = 9, 8, 4
    feature_map = random(dtype, (blocks, height, width, lanes))
    machine.put(L1, feature_map)
    matrix = patches(feature_map, filter_, stride, dilation, pads)
    rows, first_row, columns, first_column = SIDE, min(SIDE, len(matrix) - SIDE), 2 * SIDE, 0
    part = matrix[first_row : first_row + rows, first_column : first_column + columns]
    shape = (height, width, blocks * lanes, columns, rows, first_column, first_row, stride, *filter_)
    machine.call(f"load3d {dtype}", kind == "right", *shape, dilation, *pads, kind == "transposed", packed)
    layouts = {"left": (L0A, left_fractals(part)), "right": (L0B, right_fractals(part))}
    offset, expected = layouts.get(kind, (L0A, left_fractals(part.T.copy())))
    assert np.array_equal(machine.view(offset, dtype, expected.size), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
@pytest.mark.parametrize("start", ["zero", "accumulate", "bias"])
@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 32), (30, 40, 70), (1, 50, 96), (17, 1, 5)])
def test_matrices_are_multiplied(machine: Machine, dtype: str, start: str, m: int, n: int, k: int) -> None:
    a, b = random(dtype, (m, k), seed=1), random(dtype, (k, n), seed=2)
    wide: Any = np.int32 if dtype == "int8" else np.float32
    c, bias = random("int32", (m, n), seed=3).astype(wide), random("int32", (n,), seed=4).astype(wide)
    machine.put(L0A, a if m == 1 else left_fractals(a))  # a single row lies as it is
    machine.put(L0B, right_fractals(b))
    machine.put(L0C, result_fractals(c))
    machine.put(BIAS, bias)
    machine.call(f"mmad {dtype}", m, n, k, ("zero", "accumulate", "bias").index(start), 0)
    expected = a.astype(wide) @ b.astype(wide)
    expected = expected + {"zero": wide(0), "accumulate": c, "bias": bias}[start]
    found = machine.view(L0C, np.dtype(wide), up(m, SIDE) * up(n, SIDE)).reshape(-1, up(m, SIDE), SIDE)
    assert np.array_equal(found.transpose(1, 0, 2).reshape(up(m, SIDE), -1)[:m, :n], expected)
    (line,) = machine.trace()
    assert (line.name, line.repeats) == ("Mmad", up(m, SIDE) // SIDE * (up(n, SIDE) // SIDE))


@pytest.mark.parametrize("ties_to_zero", [False, True])
def test_hf32_keeps_eleven_bits_of_the_fraction(machine: Machine, ties_to_zero: bool) -> None:
    step = 2.0**-11
    values = np.array([1 + step / 2, 1 + 3 * step / 2, 1 + step / 4, -1 - 3 * step / 2], np.float32)
    machine.call("hf32", 1, ties_to_zero)
    machine.put(L0A, left_fractals(np.tile(values[:, None], (1, 1))))
    machine.put(L0B, right_fractals(np.ones((1, 1), np.float32)))
    machine.call("mmad float32", 4, 1, 1, 0, 0)
    rounded = [1, 1 + step, 1, -1 - step] if ties_to_zero else [1, 1 + 2 * step, 1, -1 - 2 * step]
    assert machine.view(L0C, "float32", 4 * SIDE)[::SIDE].tolist() == rounded


def fixpipe(machine: Machine, types: str, n: int, m: int, dst_stride: int, **options: int) -> None:
    names = ("mode", "scale", "matrices", "src_matrix", "dst_matrix", "relu", "split", "fractals", "to_l1")
    defaults = {"matrices": 1}
    values = [options.get(name, defaults.get(name, 0)) for name in names]
    machine.call(f"fixpipe {types}", n, m, up(m, SIDE), dst_stride, *values)


def written(machine: Machine, dtype: str, count: int) -> Array:
    machine.call("get_gm", count * dtype_of(dtype).itemsize)
    return machine.view(GM, dtype, count)


@pytest.mark.parametrize(("result", "mode"), [("float32", "none"), ("float16", "f16"), ("bfloat16", "bf16")])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("m", "n", "row_length"), [(16, 16, 16), (33, 48, 50), (5, 7, 7)])
def test_results_become_rows(
    machine: Machine, result: str, mode: str, relu: bool, m: int, n: int, row_length: int
) -> None:
    c = np.random.default_rng(5).standard_normal((m, n)).astype(np.float32)
    machine.put(L0C, result_fractals(c))
    fixpipe(machine, f"float32 {result}", n, m, row_length, mode=MODES[mode], relu=relu)
    found = written(machine, result, m * row_length).reshape(m, row_length)[:, :n]
    assert np.array_equal(found, (np.maximum(c, 0) if relu else c).astype(dtype_of(result)))


def test_several_matrices_become_rows(machine: Machine) -> None:
    matrices = random("float32", (3, 16, 32))
    machine.put(L0C, np.stack([result_fractals(matrix) for matrix in matrices]))
    fixpipe(machine, "float32 float32", 32, 16, 100, matrices=3, src_matrix=2, dst_matrix=33)
    found = written(machine, "float32", 16 * 100 + 66)
    for index, matrix in enumerate(matrices):
        rows = [found[index * 33 + row * 100 :][:32] for row in range(16)]
        assert np.array_equal(rows, matrix)


@pytest.mark.parametrize(("split", "width"), [(False, 16), (True, 8)])
@pytest.mark.parametrize("to_l1", [False, True])
def test_fractals_of_results_stay(machine: Machine, split: bool, width: int, to_l1: bool) -> None:
    c = random("float32", (20, 32))
    machine.put(L0C, result_fractals(c))
    stride_blocks = 20 * width // 8 + 3
    fixpipe(machine, "float32 float32", 32, 20, stride_blocks, split=split, fractals=1, to_l1=to_l1)
    count = 32 // width * stride_blocks * 8
    found = machine.view(L1, "float32", count) if to_l1 else written(machine, "float32", count)
    for column in range(32 // width):
        block = found[column * stride_blocks * 8 :][: 20 * width].reshape(20, width)
        assert np.array_equal(block, c[:, column * width : (column + 1) * width])


def scale_bits(factor: float, offset: int = 0) -> int:
    return int(np.float32(factor).view(np.uint32)) | (offset & 0x1FF) << 37 | 1 << 46


def test_integers_are_scaled_to_halves(machine: Machine) -> None:
    c = random("int32", (16, 16)) * np.int32(1000)
    machine.put(L0C, result_fractals(c))
    fixpipe(machine, "int32 float16", 16, 16, 16, mode=MODES["deq"], scale=scale_bits(0.25))
    assert np.array_equal(
        written(machine, "float16", 256).reshape(16, 16), (c * np.float32(0.25)).astype(np.float16)
    )


@pytest.mark.parametrize("source", ["float32", "int32"])
def test_results_are_rounded_and_saturated_to_bytes_by_column(machine: Machine, source: str) -> None:
    c = (random("int32", (16, 16)) * 37).astype(source)
    factors = np.array([0.5, 1, 2, 4] * 4, np.float32)
    scales = np.array([scale_bits(factor, offset=-3) for factor in factors], np.uint64)
    machine.put(L0C, result_fractals(c))
    machine.put(L1, scales)
    fixpipe(machine, f"{source} int8", 16, 16, 16, mode=MODES["vb8" if source == "float32" else "vreq"])
    expected = np.clip(np.rint(c.astype(np.float32) * factors) - 3, -128, 127).astype(np.int8)
    assert np.array_equal(written(machine, "int8", 256).reshape(16, 16), expected)


def test_results_are_added_in_global_memory(machine: Machine) -> None:
    c = random("float32", (16, 16))
    machine.put(L0C, result_fractals(c))
    before = random("float32", (16, 16), seed=9)
    machine.put(GM, before)
    machine.call("put_gm", before.nbytes)
    machine.call("atomic_add")
    fixpipe(machine, "float32 float32", 16, 16, 16)
    assert np.array_equal(written(machine, "float32", 256).reshape(16, 16), before + c)


def test_a_buffer_is_filled_with_a_value(machine: Machine) -> None:
    machine.call("fill float16", 3, 2, 1, 7)
    runs = machine.ub[L1 : L1 + 9 * BLOCK].reshape(3, 3 * BLOCK)
    assert (runs[:, : 2 * BLOCK].copy().view(np.float16) == 7).all()
    assert (runs[:, 2 * BLOCK :] == POISON).all()


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("mmad float16", (16, 16, 16, 0, 64), "dst starts at L0C byte 64, which is not a multiple of 1024"),
        ("mmad float16", (512, 512, 16, 0, 0), "dst touches L0C bytes"),
        ("load2d float16", (0, 0, 0, 200, 1, 0, 0, 0, 0), "dst touches L0A bytes"),
        ("load2d float16", (0, 524287 // 32 * 32, 0, 1, 1, 0, 0, 0, 0), "src touches L1 bytes"),
        ("load2d float32", (0, 0, 0, 1, 1, 0, 1, 0, 0), "use LoadDataWithTranspose"),
        ("fixpipe float32 float16", (16, 16, 16, 16, 0, 0, 1, 0, 0, 0, 0, 0, 0), "quantPre does not fit"),
        ("nd2nz float16", (1, 16, 16, 0, 16, 16, 1, 0, 8), "which is not a multiple of 32"),
    ],
)
def test_impossible_operands_are_told(
    machine: Machine, call: str, arguments: tuple[int, ...], message: str
) -> None:
    with pytest.raises(MachineFault, match=message):
        machine.call(call, *arguments)


@pytest.mark.parametrize("columns", [16, 20])
def test_nd2nz_fills_the_unified_buffer_of_a_vector_core(machine: Machine, columns: int) -> None:
    """The place of L1 is in the unified buffer of this machine; a last block is filled up with zeros."""
    machine.call("start", 0)
    values = np.arange(3 * 24, dtype=np.float16).reshape(3, 24)
    machine.put(GM, values)
    machine.call("put_gm", values.nbytes)
    machine.call("nd2nz float16", 1, 3, columns, 0, 24, 8, 2, 1, L1)
    for row in range(3):
        for column in range(-(-columns // 16)):
            wanted = np.zeros(16, np.float16)
            part = values[row, column * 16 : min(columns, column * 16 + 16)]
            wanted[: part.size] = part
            at = (column * 8 + row * 2) * 32
            np.testing.assert_array_equal(machine.view(L1 + at, "float16", 16), wanted)
    assert {line.name for line in machine.trace()} == {"CopyGmToUb"}


def test_cube_calls_do_nothing_on_a_vector_core(machine: Machine) -> None:
    machine.call("start", 0)
    before = machine.ub.copy()
    machine.call("load2d float16", 0, 0, 0, 1, 1, 0, 0, 0, 0)
    machine.call("mmad float16", 16, 16, 16, 0, 0)
    fixpipe(machine, "float32 float32", 16, 16, 16)
    assert np.array_equal(machine.ub, before)
    assert machine.trace() == []
