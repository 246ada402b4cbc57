"""Gradients of norms, BatchNorm, softmax in pieces, padding and quantization against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from composed_machine import FLOATS, RUNTIME, UB, bits, block, drawn
from vector_machine import Array, Machine, MachineFault, build_machine

A, B, C, D, E, F, G = (16 * 1024 * place for place in range(7))
SCRATCH, SCRATCH_BYTES = 128 * 1024, 64 * 1024


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Machine:
    return build_machine("gradients", RUNTIME, request.config.cache.mkdir("vector_machine"))


def close(result: Array, expected: Array, dtype: str, loose: float = 1.0) -> None:
    tolerance = (2e-5 if dtype == "float32" else 4e-3) * loose
    np.testing.assert_allclose(result.astype(float), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("scratch_bytes", [18 * 1024, SCRATCH_BYTES])
@pytest.mark.parametrize("dtype", FLOATS)
def test_layer_norm_grad(machine: Machine, dtype: str, scratch_bytes: int) -> None:
    rows, columns = 21, 80
    dy, x = drawn(1, (rows, columns), -1, 1, dtype), drawn(2, (rows, columns), -1, 1, dtype)
    variance, mean = drawn(3, rows, 0.5, 2, dtype), drawn(4, rows, -0.2, 0.2, dtype)
    gamma = drawn(5, columns, -1, 1, dtype)
    machine.reset(UB)
    for place, values in ((C, dy), (D, x), (E, variance), (F, mean), (G, gamma)):
        machine.put(place, values)
    machine.call(f"LayerNormGrad {dtype}", A, B, C, D, E, F, G, SCRATCH, scratch_bytes, rows, columns)
    wide = [each.astype(float) for each in (dy, x, variance[:, None], mean[:, None], gamma)]
    dy_, x_, variance_, mean_, gamma_ = wide
    scale = (variance_ + float(np.array(1e-3, dtype))) ** -0.5
    pd_xl, centred = dy_ * gamma_, x_ - mean_
    pd_variance = (-0.5 * pd_xl * centred * scale**3).sum(1, keepdims=True)
    pd_mean = (-pd_xl * scale).sum(1, keepdims=True) + pd_variance / columns * (-2 * centred).sum(
        1, keepdims=True
    )
    expected = pd_xl * scale + pd_variance * 2 / columns * centred + pd_mean / columns
    close(machine.view(A, dtype, rows * columns).reshape(rows, columns), expected, dtype)
    close(machine.view(B, dtype, rows * columns).reshape(rows, columns), centred * scale, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_layer_norm_grad_beta(machine: Machine, dtype: str) -> None:
    rows, columns = 9, 48
    res, dy = drawn(1, (rows, columns), -1, 1, dtype), drawn(2, (rows, columns), -1, 1, dtype)
    machine.reset(UB)
    machine.put(C, res)
    machine.put(D, dy)
    machine.call(f"LayerNormGradBeta {dtype}", A, B, C, D, SCRATCH, SCRATCH_BYTES, rows, columns)
    close(machine.view(A, dtype, columns), (res.astype(float) * dy.astype(float)).sum(0), dtype)
    close(machine.view(B, dtype, columns), dy.astype(float).sum(0), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_batch_norm(machine: Machine, dtype: str) -> None:
    batches, columns = 10, 64
    x = drawn(1, (batches, columns), -2, 2, dtype)
    gamma, beta = drawn(2, batches, 0.5, 2, dtype), drawn(3, batches, -1, 1, dtype)
    machine.reset(UB)
    for place, values in ((D, x), (E, gamma), (F, beta)):
        machine.put(place, values)
    machine.call(f"BatchNorm {dtype}", A, B, C, D, E, F, SCRATCH, SCRATCH_BYTES, batches, columns)
    wide = x.astype(float)
    mean, variance = wide.mean(0), wide.var(0)
    normal = (wide - mean) / np.sqrt(variance + float(np.array(1e-3, dtype)))
    expected = normal * gamma.astype(float)[:, None] + beta.astype(float)[:, None]
    close(machine.view(A, dtype, x.size).reshape(x.shape), expected, dtype)
    close(machine.view(B, dtype, columns), mean, dtype)
    close(machine.view(C, dtype, columns), variance, dtype)


def test_norms_say_what_they_need(machine: Machine) -> None:
    machine.reset(UB)
    with pytest.raises(MachineFault, match="LayerNormGrad: rows of 84 bytes, expected a multiple of 32"):
        machine.call("LayerNormGrad float32", A, B, C, D, E, F, G, SCRATCH, SCRATCH_BYTES, 2, 21)
    with pytest.raises(MachineFault, match="LayerNormGradBeta: the temporary buffer has 64 bytes"):
        machine.call("LayerNormGradBeta float32", A, B, C, D, SCRATCH, 64, 2, 16)
    with pytest.raises(MachineFault, match="BatchNorm: an extent is 0"):
        machine.call("BatchNorm float32", A, B, C, D, E, F, SCRATCH, SCRATCH_BYTES, 0, 64)


def flash(src: Array, before: tuple[Array, Array] | None) -> tuple[Array, ...]:
    """The formula of SoftmaxFlash's page: result, sums, maxima and factors."""
    wide = src.astype(float)
    most = wide.max(1, keepdims=True)
    if before is None:
        total = np.exp(wide - most).sum(1, keepdims=True)
        return np.exp(wide - most) / total, total, most, total
    now = np.maximum(before[1], most)
    kept = np.exp(before[1] - now) * before[0]
    total = kept + np.exp(wide - now).sum(1, keepdims=True)
    return np.exp(wide - now) / total, total, now, kept / total


def numbers_of_rows(machine: Machine, place: int, dtype: str, rows: int) -> Array:
    """What is kept of each row; a data block holds nothing else."""
    blocks = machine.view(place, dtype, rows * block(dtype)).reshape(rows, -1)
    assert (blocks == blocks[:, :1]).all()
    return blocks[:, :1].astype(float)


PIECES = [("float32", "float32"), ("float16", "float16"), ("float16", "float32")]


@pytest.mark.parametrize(("dtype", "kept"), PIECES)
@pytest.mark.parametrize(("rows", "stride", "columns"), [(12, 64, 64), (21, 80, 77), (8, 256, 256)])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("scratch_bytes", [4096, SCRATCH_BYTES])
def test_softmax_in_pieces_is_normalized_with_each(
    machine: Machine,
    dtype: str,
    kept: str,
    rows: int,
    stride: int,
    columns: int,
    in_place: bool,
    scratch_bytes: int,
) -> None:
    first, second = drawn(1, (rows, stride), -3, 3, dtype), drawn(2, (rows, stride), -3, 3, dtype)
    dst, sums, maxima = (D, B, C) if in_place else (A, F, G)
    shape = (SCRATCH, scratch_bytes, rows, stride, columns)
    machine.reset(UB)
    machine.put(D, first)
    machine.call(f"SoftmaxFlash {kept} {dtype}", dst, B, C, D, E, B, C, *shape, 0)
    expected = flash(first[:, :columns], None)
    result = machine.view(dst, dtype, first.size).reshape(first.shape)
    close(result[:, :columns], expected[0], dtype)
    for place, numbers in ((B, expected[1]), (C, expected[2])):
        close(numbers_of_rows(machine, place, kept, rows), numbers, kept)
    before = numbers_of_rows(machine, B, kept, rows), numbers_of_rows(machine, C, kept, rows)
    machine.put(D, second)
    machine.call(f"SoftmaxFlash {kept} {dtype}", dst, sums, maxima, D, E, B, C, *shape, 1)
    expected = flash(second[:, :columns], before)
    result = machine.view(dst, dtype, second.size).reshape(second.shape)
    close(result[:, :columns], expected[0], dtype)
    for place, kind, numbers in (
        (sums, kept, expected[1]),
        (maxima, kept, expected[2]),
        (E, dtype, expected[3]),
    ):
        close(numbers_of_rows(machine, place, kind, rows), numbers, kind)


@pytest.mark.parametrize(("dtype", "kept"), PIECES)
def test_softmax_in_pieces_says_what_it_needs(machine: Machine, dtype: str, kept: str) -> None:
    machine.reset(UB)
    call, shape = f"SoftmaxFlash {kept} {dtype}", (SCRATCH_BYTES, 8, 64, 64)
    with pytest.raises(MachineFault, match=r"SoftmaxFlash: rows of \d+ bytes, expected a multiple of 32"):
        machine.call(call, A, B, C, D, E, F, G, SCRATCH, SCRATCH_BYTES, 8, 61, 61, 1)
    with pytest.raises(MachineFault, match="SoftmaxFlash: the temporary buffer has 512 bytes"):
        machine.call(call, A, B, C, D, E, F, G, SCRATCH, 512, 8, 64, 64, 1)
    with pytest.raises(MachineFault, match="SoftmaxFlash: dst overlaps"):
        machine.call(call, D + 32, B, C, D, E, F, G, SCRATCH, *shape, 1)
    with pytest.raises(MachineFault, match="SoftmaxFlash: dst overlaps"):
        machine.call(call, A, B, G + 32, D, E, F, G, SCRATCH, *shape, 1)
    with pytest.raises(MachineFault, match=r"SoftmaxFlash: .*temporary buffer"):
        machine.call(call, A, B, C, D, E, SCRATCH + 64, G, SCRATCH, *shape, 1)
    with pytest.raises(MachineFault, match="align"):
        machine.call(call, A + 4, B, C, D, E, F, G, SCRATCH, *shape, 1)


def shifted(
    src: Array, alpha: float, loops: int = 1, before: tuple[Array, Array, Array] | None = None
) -> tuple[Array, ...]:
    """The formula of SoftmaxFlashV3's page: result, means, sums, maxima and factors."""
    x, (rows, columns) = src.astype(float), src.shape
    scale = alpha / (1 - alpha)
    folded = x[:, :512].reshape(rows, 64, 8).sum(2) + x[:, 512:].reshape(rows, -1, 64).sum(1)
    local = folded.reshape(rows, 8, 8).sum(2) / (columns // 8)
    mean = local.mean(1, keepdims=True)
    x = x - np.repeat((mean - local) * scale, columns // 8, 1)
    most = x.max(1, keepdims=True)
    if before is None:
        result = np.exp(x - most)
        return result, mean, result.sum(1, keepdims=True), most, most
    means, sums, maxima = before
    x_mean = (mean + means * (loops - 1)) / loops
    now, past = (mean - x_mean) * scale, (means - x_mean) * scale
    x_max = np.maximum(most + now, maxima + past)
    result, factor = np.exp(x - (x_max - now)), np.exp(maxima - x_max + past)
    return result, x_mean, factor * sums + result.sum(1, keepdims=True), x_max, factor


V3_SCRATCH = 96 * 1024
V3_PLACES = DST, MEAN, SUM, MAX, SRC, FACTOR, OLD_MEAN, OLD_SUM, OLD_MAX = (
    *(0, 64 * 1024, 66 * 1024, 68 * 1024, 32 * 1024, 70 * 1024),
    *(72 * 1024, 74 * 1024, 76 * 1024),
)


def close_to_shifted(
    machine: Machine,
    places: tuple[int, ...],
    shape: tuple[int, int],
    expected: tuple[Array, ...],
    update: bool,
) -> None:
    rows, columns = shape
    dst, mean, sums, most, _, factor = places[:6]
    result = machine.view(dst, "float16", rows * columns).reshape(shape)
    np.testing.assert_allclose(result.astype(float), expected[0], rtol=2e-3, atol=1e-6)
    for place, numbers in ((mean, expected[1]), (sums, expected[2]), (most, expected[3])):
        np.testing.assert_allclose(
            numbers_of_rows(machine, place, "float32", rows), numbers, rtol=2e-5, atol=2e-5
        )
    if update:
        np.testing.assert_allclose(
            numbers_of_rows(machine, factor, "float16", rows), expected[4], rtol=2e-3, atol=1e-6
        )


@pytest.mark.parametrize("alpha", [0.9375, 0.96889, 0.984497])
@pytest.mark.parametrize(
    ("shape", "scratch_bytes"), [((8, 1024), 64 * 1024), ((24, 512), 24 * 1024), ((8, 1728), 72 * 1024)]
)
@pytest.mark.parametrize("in_place", [False, True])
def test_softmax_of_shifted_pieces(
    machine: Machine, alpha: float, shape: tuple[int, int], scratch_bytes: int, in_place: bool
) -> None:
    first, second, third = (drawn(seed, shape, -0.5, 0.5, "float16") for seed in (1, 2, 3))
    first_places = (DST, OLD_MEAN, OLD_SUM, OLD_MAX, SRC, FACTOR, MEAN, SUM, MAX)
    later = (
        (SRC, OLD_MEAN, OLD_SUM, OLD_MAX, SRC, FACTOR, OLD_MEAN, OLD_SUM, OLD_MAX) if in_place else V3_PLACES
    )
    rest = (V3_SCRATCH, scratch_bytes, *shape, *shape)
    machine.reset(UB)
    machine.put(SRC, first)
    machine.call("SoftmaxFlashV3 first float16", *first_places, *rest, 1, 8, round(alpha * 1e6))
    expected = shifted(first, alpha)
    close_to_shifted(machine, first_places, shape, expected, False)
    for loops, piece in ((2, second), (3, third)):
        before = tuple(
            numbers_of_rows(machine, place, "float32", shape[0]) for place in (OLD_MEAN, OLD_SUM, OLD_MAX)
        )
        machine.put(SRC, piece)
        machine.call("SoftmaxFlashV3 float16", *later, *rest, loops, 8, round(alpha * 1e6))
        close_to_shifted(
            machine, later, shape, shifted(piece, alpha, loops, (before[0], before[1], before[2])), True
        )


def test_softmax_of_shifted_pieces_gives_the_figures_of_its_page(machine: Machine) -> None:
    """The page says 1024 columns, but its steps of 20 / 16384 from row to row at 2.5 are those of 2048."""
    shape = (8, 2048)
    machine.reset(UB)
    machine.put(SRC, np.linspace(0, 20, 8 * 2048).reshape(shape).astype(np.float16))
    for place in (OLD_MEAN, OLD_SUM, OLD_MAX):
        machine.put(place, np.full((8, 8), 0.5, np.float32))
    machine.call("SoftmaxFlashV3 float16", *V3_PLACES, V3_SCRATCH, 80 * 1024, *shape, *shape, 1, 8, 937500)
    result = machine.view(DST, "float16", 8 * 2048).reshape(shape)
    page = {
        0: ((0.0049, 0.004906, 0.004913), (0.998, 1, 1)),
        1: ((0.00488, 0.00489, 0.00489), (0.996, 0.996, 1)),
        2: ((0.004868, 0.004868, 0.004887), (0.996, 0.996, 1)),
        5: ((0.004894, 0.004894, 0.004894), (1, 1, 1)),
        6: ((0.00472, 0.00472, 0.00472), (1, 1, 1)),
        7: ((0.004684, 0.004684, 0.004684), (1, 1, 1)),
    }
    for row, (head, tail) in page.items():
        np.testing.assert_allclose(result[row, :3].astype(float), head, rtol=1e-3)
        np.testing.assert_allclose(result[row, -3:].astype(float), tail, rtol=1e-3)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({11: 12, 13: 12}, "srcM is 12, expected a multiple of 8"),
        ({12: 448, 14: 448}, "srcK is 448, expected at least 512"),
        ({12: 544, 14: 544}, "srcK is 544, expected a multiple of 64"),
        ({13: 7}, "oriSrcM is 7, expected 8"),
        ({14: 500}, "oriSrcK is 500, expected 512"),
        ({15: 0}, "loopCnt is 0, expected at least 1"),
        ({16: 4}, "splitMeanCnt is 4, expected 8"),
        ({10: 4096}, "the temporary buffer has 4096 bytes"),
        ({0: SRC + 32}, "dst overlaps"),
        ({3: OLD_MAX + 32}, "dst overlaps"),
        ({7: V3_SCRATCH + 64}, "temporary buffer"),
        ({5: V3_SCRATCH + 64}, "temporary buffer"),
    ],
)
def test_softmax_of_shifted_pieces_says_what_it_needs(
    machine: Machine, changed: dict[int, int], told: str
) -> None:
    arguments = dict(enumerate((*V3_PLACES, V3_SCRATCH, 64 * 1024, 8, 512, 8, 512, 1, 8, 937500)))
    machine.reset(UB)
    machine.call("SoftmaxFlashV3 float16", *arguments.values())
    with pytest.raises(MachineFault, match=f"SoftmaxFlashV3: .*{told}"):
        machine.call("SoftmaxFlashV3 float16", *(arguments | changed).values())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("own", "left", "right"), [(15, 0, 1), (13, 1, 1), (29, 2, 0)])
def test_pad_of_rows_that_are_no_whole_blocks(
    machine: Machine, dtype: str, own: int, left: int, right: int
) -> None:
    height, width = 32, -(-own // block(dtype)) * block(dtype)
    right = min(right, width - own - left)
    x = drawn(1, (height, own), -9, 9, dtype)
    machine.reset(UB)
    machine.put(B, x)
    machine.call(f"Pad {dtype}", A, B, left, right, 7, height, own, own, SCRATCH, SCRATCH_BYTES)
    result = machine.view(A, dtype, height * width).reshape(height, width)
    np.testing.assert_array_equal(result[:, left : left + own], x)
    np.testing.assert_array_equal(result[:, :left], 7)
    np.testing.assert_array_equal(result[:, left + own :], 7)


@pytest.mark.parametrize("dtype", FLOATS)
def test_pad_of_columns_that_do_not_count_and_unpad(machine: Machine, dtype: str) -> None:
    height, width = 20, 48
    own = width - 3
    x = drawn(1, (height, width), -9, 9, dtype)
    machine.reset(UB)
    machine.put(B, x)
    machine.call(f"Pad {dtype}", A, B, 0, 3, -2, height, width, own, SCRATCH, SCRATCH_BYTES)
    result = machine.view(A, dtype, height * width).reshape(height, width)
    np.testing.assert_array_equal(result, np.where(np.arange(width) < own, x, -2))
    machine.call(f"UnPad {dtype}", C, B, 3, height, width, SCRATCH, SCRATCH_BYTES)
    np.testing.assert_array_equal(machine.view(C, dtype, height * own).reshape(height, own), x[:, :own])
    with pytest.raises(MachineFault, match="UnPad: rightPad is 0"):
        machine.call(f"UnPad {dtype}", C, B, 0, height, width, SCRATCH, SCRATCH_BYTES)
    with pytest.raises(MachineFault, match="Pad: leftPad of rows of whole data blocks is 1, expected 0"):
        machine.call(f"Pad {dtype}", A, B, 1, 2, -2, height, width, own, SCRATCH, SCRATCH_BYTES)


@pytest.mark.parametrize("shape", [(1, 16, 2, 3, 5), (2, 20, 1, 4, 4), (17, 16, 1, 2, 3)])
@pytest.mark.parametrize("format", ["NDC1HWC0", "FRACTAL_Z_3D"])
def test_trans_data(machine: Machine, format: str, shape: tuple[int, ...]) -> None:
    n, c, d, h, w = shape
    area, blocks = -(-h * w // 16) * 16, -(-c // 16)
    x = np.zeros((n, c, d, area), np.float16)
    x[..., : h * w] = drawn(1, (n, c, d, h * w), -9, 9, "float16")
    channels = np.zeros((n, blocks * 16, d, h * w), np.float16)
    channels[:, :c] = x[..., : h * w]
    packed = channels.reshape(n, blocks, 16, d, h * w).transpose(0, 3, 1, 4, 2)  # n, d, c1, hw, c0
    if format == "FRACTAL_Z_3D":
        rows = np.zeros((-(-n // 16) * 16, *packed.shape[1:]), np.float16)
        rows[:n] = packed
        packed = rows.transpose(1, 2, 3, 0, 4)  # d, c1, hw, n, c0
    machine.reset(UB)
    machine.put(0, x)
    machine.call(f"TransData to {format}", 64 * 1024, 0, *shape, SCRATCH, 1024)
    np.testing.assert_array_equal(
        machine.view(64 * 1024, "float16", packed.size).reshape(packed.shape), packed
    )
    machine.reset(UB)
    machine.put(0, np.ascontiguousarray(packed))
    machine.call(f"TransData from {format}", 64 * 1024, 0, *shape, SCRATCH, 1024)
    result = machine.view(64 * 1024, "float16", x.size).reshape(x.shape)
    np.testing.assert_array_equal(result[..., : h * w], x[..., : h * w])


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("source", ["int8", "int4"])
def test_anti_quantization(machine: Machine, dtype: str, groups: int, transposed: bool, source: str) -> None:
    import ml_dtypes

    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    rows, columns = 8, 128
    least, most = (-100, 100) if source == "int8" else (-8, 8)
    x = np.random.default_rng(1).integers(least, most, (rows, columns)).astype(np.int8)
    shape = (rows, groups) if transposed else (groups, columns)
    offset = np.random.default_rng(2).integers(-4, 4, shape).astype(kind)
    scale = (np.random.default_rng(3).integers(1, 9, shape) / 8).astype(kind)
    machine.reset(UB)
    for place, values in ((B, x if source == "int8" else four_bits(x)), (C, offset), (D, scale)):
        machine.put(place, values.view(np.uint8) if values.dtype == kind else values)
    name = f"AscendAntiQuant {'int4 ' * (source == 'int4')}{'transposed ' * transposed}{dtype}"
    machine.call(name, A, B, C, D, SCRATCH, 4096, x.size, columns if transposed else rows, groups)
    axis, share = (1, columns // groups) if transposed else (0, rows // groups)
    expected = np.repeat(scale.astype(float), share, axis) * (
        x + np.repeat(offset.astype(float), share, axis)
    )
    result = machine.view(A, dtype, x.size).astype(float).reshape(x.shape)
    np.testing.assert_allclose(result, expected.astype(kind).astype(float), rtol=0, atol=0)


def four_bits(values: Array) -> Array:
    """Pack pairs of signed numbers of four bits, the first into the lower half of a byte."""
    pairs = values.astype(np.int8).view(np.uint8).reshape(-1, 2) & 15
    return (pairs[:, 0] | pairs[:, 1] << 4).astype(np.uint8)


def test_anti_quantization_of_four_bits_by_tensor(machine: Machine) -> None:
    x = (np.arange(640) % 16 - 8).astype(np.int8)
    machine.reset(UB)
    machine.put(B, four_bits(x))
    for scratch_bytes in (128, 320, 4096):  # 160 halfs fit two rounds of 64 and no part of a data block
        machine.view(A, "float16", x.size)[:] = 0
        machine.call("AscendAntiQuant int4 by tensor", A, B, SCRATCH, scratch_bytes, x.size)
        np.testing.assert_array_equal(machine.view(A, "float16", x.size), (x + 2.0) * 3)
    scale = (np.arange(128) % 7).astype(np.float16)
    machine.put(C, scale)
    machine.call("AscendAntiQuant int4 without offset", A, B, C, SCRATCH, 4096, x.size, 5)
    np.testing.assert_array_equal(machine.view(A, "float16", x.size), (x.reshape(5, 128) * scale).ravel())
    with pytest.raises(MachineFault, match="AscendAntiQuant: the temporary buffer has 64 bytes"):
        machine.call("AscendAntiQuant int4 by tensor", A, B, SCRATCH, 64, x.size)
    with pytest.raises(MachineFault, match=r"AscendAntiQuant: .*expected a multiple of 32"):
        machine.call("AscendAntiQuant int4 by tensor", A, B, SCRATCH, 4096, x.size - 32)
    with pytest.raises(MachineFault, match="AscendAntiQuant: dst overlaps"):
        machine.call("AscendAntiQuant int4 by tensor", A, A + 608, SCRATCH, 4096, x.size)
    with pytest.raises(MachineFault, match=r"AscendAntiQuant: .*expected a multiple of 64"):
        machine.call("AscendAntiQuant int4 float16", A, B, C, D, SCRATCH, 4096, 64, 2, 1)


@pytest.mark.parametrize("second_half", [0, 1])
def test_cast_dequant(machine: Machine, second_half: int) -> None:
    x = np.arange(-128, 128, dtype=np.int16) * 3
    machine.reset(UB)
    machine.put(B, x)
    machine.call("CastDequant int8", A, B, x.size, bits(0.5, "float32"), -3, second_half)
    expected = np.clip(np.rint(x * 0.5) - 3, -128, 127).astype(np.int8).reshape(-1, 16)
    result = machine.view(A, "int8", x.size * 2).reshape(-1, 32)
    np.testing.assert_array_equal(result[:, 16 * second_half : 16 * second_half + 16], expected)
    assert not result[:, 16 - 16 * second_half : 32 - 16 * second_half].any()
    with pytest.raises(MachineFault, match="signMode of SetDeqScale is false, but results are int8_t"):
        machine.call("CastDequant wrong sign", A, B, 64)
    machine.call("CastDequant table", A, B, x.size, C)
    lanes = np.arange(16)
    expected = np.clip(np.rint(x.reshape(-1, 16) * (0.5 * lanes)) + lanes - 8, 0, 255).astype(np.uint8)
    np.testing.assert_array_equal(machine.view(A, "uint8", x.size * 2).reshape(-1, 32)[:, 16:], expected)


@pytest.mark.parametrize("by_blocks", [0, 1])
def test_bilinear_interpolation(machine: Machine, by_blocks: int) -> None:
    x = np.arange(1, 513, dtype=np.float16)
    factors = (np.arange(32) % 5 + 1).astype(np.float16)
    machine.reset(UB)
    machine.put(B, x)
    machine.put(C, np.arange(0, 1024, 32, dtype=np.uint32))
    machine.put(D, factors)
    machine.call("BilinearInterpolation", A, B, C, D, 2, 2, by_blocks, 128, SCRATCH, 8192)
    blocks = x.reshape(4, 8, 16).astype(float)
    taken = (
        factors.astype(float).reshape(4, 8, 1) if by_blocks else factors[:4].astype(float).reshape(4, 1, 1)
    )
    expected = (blocks * taken).reshape(2, 2, 128).sum(1)
    np.testing.assert_allclose(
        machine.view(A, "float16", 256).reshape(2, 128).astype(float), expected, rtol=2e-3
    )
    with pytest.raises(MachineFault, match="BilinearInterpolation: vROffset is 64, expected at least 128"):
        machine.call("BilinearInterpolation", A, B, C, D, 2, 2, by_blocks, 64, SCRATCH, 8192)


def test_watched_memory_ends_the_run(machine: Machine) -> None:
    """Of the scalar unit; test_kernel_features.py has the instructions."""
    machine.reset(UB)
    machine.call("CheckLocalMemoryIA", 8, 15, -8)
    with pytest.raises(MachineFault, match="SetValue: writes unified buffer byte 320, which CheckLocal"):
        machine.call("CheckLocalMemoryIA", 8, 15, -80)


def test_four_bit_numbers_by_repeats(machine: Machine) -> None:
    x = (np.arange(256) % 17 - 8).astype(np.float16)
    machine.reset(UB)
    machine.put(B, x)
    machine.call("Cast int4", A, B, C, 2, 128)
    np.testing.assert_array_equal(machine.view(C, "float16", 256), np.clip(x, -8, 7))
    packed = machine.view(A, "uint8", 128)
    np.testing.assert_array_equal(packed & 15, np.clip(x, -8, 7)[::2].astype(np.int8).view(np.uint8) & 15)
    with pytest.raises(MachineFault, match="expected an even count, and equal bits for both"):
        machine.call("Cast int4", A, B, C, 2, 127)


def test_broadcast_of_bytes(machine: Machine) -> None:
    row, column = np.arange(-32, 32, dtype=np.int8), np.arange(40, dtype=np.uint8) * 6
    machine.reset(UB)
    machine.put(B, row)
    machine.put(C, column)
    machine.call("BroadCast rows int8", A, B, 5, 64, SCRATCH, SCRATCH_BYTES)
    np.testing.assert_array_equal(machine.view(A, "int8", 320).reshape(5, 64), np.tile(row, (5, 1)))
    machine.call("BroadCast columns uint8", A, C, 40, 32, SCRATCH, SCRATCH_BYTES)
    np.testing.assert_array_equal(
        machine.view(A, "uint8", 1280).reshape(40, 32), np.repeat(column[:, None], 32, 1)
    )
    with pytest.raises(MachineFault, match="Broadcast: the temporary buffer has 64 bytes"):
        machine.call("BroadCast rows int8", A, B, 5, 64, SCRATCH, 64)
