"""Broadcasting, sums, sorting, filling and tensor operators against numpy."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from vector_machine import Array, Machine, MachineFault, build_machine

DST, SRC, OTHER, TMP = 0, 16 * 1024, 24 * 1024, 32 * 1024
RECORD_BYTES = 8
RUNTIME = [
    "composed_demands",
    "library_rows",
    "library_softmax",
    "softmax_sequence",
    "fill",
    "math_elementary",
    "math_sequences",
    "math_gamma",
    "math_rounding",
    "math_trigonometric",
    "math_power",
    "vector_sort",
    "vector_elementwise",
    "vector_cast",
    "vector_compare",
    "vector_gather",
    "vector_reduce",
    "vector_reduce_all",
    "vector_transpose",
    "copy",
    "atomic",
]


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Machine:
    return build_machine("library", RUNTIME, request.config.cache.mkdir("vector_machine"))


def numbers(dtype: str, count: int) -> Array:
    """Return small distinct-looking numbers."""
    result: Array = (np.random.default_rng(count).integers(-999, 999, count) / 4).astype(dtype)
    return result


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 16), (5, 32), (24, 16), (19, 7), (3, 130), (40, 3)])
@pytest.mark.parametrize("axis", ["columns", "rows"])
def test_broadcast(machine: Machine, axis: str, rows: int, columns: int, dtype: str) -> None:
    machine.reset()
    source = numbers(dtype, rows if axis == "columns" else columns)
    machine.put(SRC, source)
    machine.call(f"BroadCast {axis} {dtype}", DST, SRC, rows, columns, TMP, 10 * 1024)
    expected = np.broadcast_to(source[:, None] if axis == "columns" else source, (rows, columns))
    result = machine.view(DST, dtype, rows * columns).reshape(rows, columns)
    np.testing.assert_array_equal(result, expected)


def test_broadcast_names_the_scratch_it_needs(machine: Machine) -> None:
    machine.reset()
    with pytest.raises(MachineFault, match="temporary buffer has 64 bytes, but the call needs at least 256"):
        machine.call("BroadCast columns float32", DST, SRC, 8, 8, TMP, 64)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    ("rows", "stride", "columns"), [(1, 16, 9), (3, 64, 64), (4, 208, 200), (2, 1024, 1000)]
)
def test_sum_and_mean_of_rows(machine: Machine, rows: int, stride: int, columns: int, dtype: str) -> None:
    source = numbers("int32", rows * stride).astype(dtype) / np.dtype(dtype).type(256)
    expected = source.reshape(rows, stride)[:, :columns].astype(np.float64).sum(axis=1)
    tolerance = 1e-5 if dtype == "float32" else 2e-2
    for name, reference in (("Sum", expected), ("Mean", expected / columns)):
        machine.reset()
        machine.put(SRC, source)
        machine.call(f"{name} {dtype}", DST, SRC, rows, stride, columns, TMP, 2048)
        result = machine.view(DST, dtype, rows).astype(np.float64)
        np.testing.assert_allclose(result, reference, rtol=tolerance, atol=tolerance)
        # asc-devkit, impl/adv_api/detail/reduce/sum: one instruction for all repeats of a row, then one more
        lanes = 256 // np.dtype(dtype).itemsize
        passes = 1 if columns <= lanes else 2
        assert len(machine.trace()) == rows * passes + (name == "Mean")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("form", ["tensor first", "scalar first"])
def test_select_with_bytes(machine: Machine, form: str, dtype: str) -> None:
    rows, columns, mask_columns = 3, 80, 96
    source = numbers(dtype, rows * columns)
    mask = np.random.default_rng(1).integers(0, 2, (rows, mask_columns)).astype(np.uint8) * 7
    fill = np.array([1.5], dtype)
    machine.reset()
    machine.put(SRC, source)
    machine.put(OTHER, mask.ravel())
    bits = int.from_bytes(fill.tobytes(), "little")
    name = f"SelectWithBytesMask {form} {dtype}"
    machine.call(name, DST, SRC, bits, OTHER, rows, columns, mask_columns, TMP, 512)
    zero = mask[:, :columns] == 0
    table = source.reshape(rows, columns)
    expected = np.where(zero, table, fill) if form == "tensor first" else np.where(zero, fill, table)
    result = machine.view(DST, dtype, rows * columns).reshape(rows, columns)
    np.testing.assert_array_equal(result, expected)


def records(scores: Array, indices: Array) -> Array:
    """Return (score, index) records of eight bytes."""
    table = np.zeros((scores.size, RECORD_BYTES), np.uint8)
    table[:, : scores.itemsize] = np.ascontiguousarray(scores).view(np.uint8).reshape(scores.size, -1)
    table[:, 4:] = indices.astype(np.uint32).view(np.uint8).reshape(scores.size, 4)
    return table


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_sort32_orders_each_32_and_keeps_ties(machine: Machine, dtype: str) -> None:
    scores = np.random.default_rng(2).integers(0, 9, 64).astype(dtype)
    indices = np.arange(64, dtype=np.uint32)
    machine.reset()
    machine.put(SRC, scores)
    machine.put(OTHER, indices)
    machine.call(f"Sort32 {dtype}", DST, SRC, OTHER, 2)
    order = np.concatenate([np.argsort(-scores[at : at + 32], kind="stable") + at for at in (0, 32)])
    result = machine.view(DST, "uint8", 64 * RECORD_BYTES).reshape(64, RECORD_BYTES)
    np.testing.assert_array_equal(result, records(scores[order], indices[order]))
    assert [(line.name, line.repeats) for line in machine.trace()] == [("Sort32", 2)]


def merge(machine: Machine, name: str, queues: list[Array]) -> tuple[Array, list[int]]:
    """Merge queues of descending float32 scores; return all scores written and what was taken from each."""
    machine.reset()
    places = [SRC + 2048 * i for i in range(4)]
    lengths = [queue.size for queue in queues] + [0] * (4 - len(queues))
    for place, queue in zip(places, queues, strict=False):
        machine.put(place, records(queue, np.arange(queue.size)).ravel())
    machine.call(f"{name} float32", DST, *places, *lengths, (1 << len(queues)) - 1, 1, TMP)
    taken = machine.view(TMP, "uint32", 4).tolist()[: len(queues)]
    scores = machine.view(DST, "float32", 2 * sum(taken))[::2].copy()
    return scores, taken


def test_merge_sort_takes_all_queues(machine: Machine) -> None:
    queues = [np.sort(numbers("float32", size))[::-1] for size in (32, 17, 64)]
    scores, taken = merge(machine, "MrgSort", queues)
    np.testing.assert_array_equal(scores, np.sort(np.concatenate(queues))[::-1])
    assert taken == [32, 17, 64]


def test_suspended_merge_stops_at_the_first_empty_queue(machine: Machine) -> None:
    queues = [np.array(values, np.float32) for values in ([9, 8, 7], [6, 5], [8.5, 1], [2])]
    scores, taken = merge(machine, "MrgSort suspended", queues)
    np.testing.assert_array_equal(scores, [9, 8.5, 8, 7])
    assert taken == [3, 0, 1, 0]


def test_what_a_merge_took_is_read_once_after_it(machine: Machine) -> None:
    queues = [np.array(values, np.float32) for values in ([9, 8, 7], [6, 5], [8.5, 1], [2])]
    _, taken = merge(machine, "MrgSort and its counts", queues)
    assert taken == [3, 0, 1, 0]
    names = [line.name for line in machine.trace()]
    assert names[:3] == ["MrgSort", "ScalarAccess", "ScalarAccess"]  # the register, then the driver's stores


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("repeats", [1, 3, 4, 9])
def test_full_sort_and_extract(machine: Machine, repeats: int, dtype: str) -> None:
    count = repeats * 32
    scores = np.random.default_rng(repeats).permutation(count).astype(dtype)
    machine.reset()
    machine.put(SRC, scores)
    machine.put(OTHER, np.arange(count, dtype=np.uint32))
    values_at, indices_at, records_at, spare_at = 0, 4096, TMP, TMP + 8192
    machine.call(f"Sort {dtype}", values_at, indices_at, SRC, OTHER, records_at, spare_at, repeats)
    np.testing.assert_array_equal(machine.view(values_at, dtype, count), np.arange(count)[::-1].astype(dtype))
    np.testing.assert_array_equal(machine.view(indices_at, "uint32", count), np.argsort(-scores))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int32", "int64"])
@pytest.mark.parametrize(("first", "count"), [(0, 1), (32, 37), (0, 500)])
def test_init_global_memory(machine: Machine, first: int, count: int, dtype: str) -> None:
    machine.reset()
    machine.call(f"InitGlobalMemory {dtype}", count, 5, first)
    result = machine.view(0, dtype, 4096 // np.dtype(dtype).itemsize)
    untouched = np.full(4096, 0x5A, np.uint8).view(dtype)
    np.testing.assert_array_equal(result[first : first + count], np.full(count, 5, dtype))
    np.testing.assert_array_equal(result[first + count :], untouched[first + count :])
    np.testing.assert_array_equal(result[:first], untouched[:first])


def test_tensor_operators_and_element_references(machine: Machine) -> None:
    left, right = numbers("float32", 40), numbers("float32", 41)[:40]
    machine.reset()
    machine.put(SRC, left)
    machine.put(OTHER, right)
    machine.call("operators float32", DST, SRC, OTHER, 40)
    expected = (left + right) * left - right
    expected[0], expected[2] = expected[1], 3.5
    np.testing.assert_array_equal(machine.view(DST, "float32", 41), np.append(expected, np.float32(0)))
    assert [line.name for line in machine.trace()][:3] == ["Add", "Mul", "Sub"]


def test_comparison_operator_packs_bits(machine: Machine) -> None:
    left, right = numbers("float32", 128), numbers("float32", 129)[:128]
    machine.reset()
    machine.put(SRC, left)
    machine.put(OTHER, right)
    machine.call("comparison float32", DST, SRC, OTHER, 128)
    expected = np.packbits(left >= right, bitorder="little")
    np.testing.assert_array_equal(machine.view(DST, "uint8", 16), expected)


def test_raw_reductions_and_their_registers(machine: Machine) -> None:
    values = np.arange(1, 21, dtype=np.float32)
    values[13] = 100
    machine.reset()
    machine.put(SRC, values)
    machine.call("raw reductions float32", DST, SRC, 20)
    result = machine.view(DST, "float32", 4)
    assert result[0] == result[1] == values.sum()
    assert result[2] == 100
    assert machine.view(DST, "uint32", 4)[3] == 13


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    ("rows", "stride", "columns"), [(1, 16, 16), (9, 32, 20), (16, 64, 64), (5, 208, 201)]
)
def test_softmax(machine: Machine, rows: int, stride: int, columns: int, dtype: str) -> None:
    source = (numbers("float32", rows * stride) / 100).astype(dtype)
    sums, maxima = 8 * 1024, 12 * 1024
    machine.reset()
    machine.put(SRC, source)
    machine.call(f"SoftMax {dtype}", DST, sums, maxima, SRC, rows, stride, columns, TMP, 12 * 1024)
    table = source.reshape(rows, stride)[:, :columns].astype(np.float64)
    powers = np.exp(table - table.max(axis=1, keepdims=True))
    result = machine.view(DST, dtype, rows * stride).reshape(rows, stride)[:, :columns]
    tolerance = 1e-5 if dtype == "float32" else 2e-3
    expected = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=tolerance, atol=tolerance / 100)
    per_block = 32 // source.itemsize
    for place, values in ((sums, powers.sum(axis=1)), (maxima, table.max(axis=1))):
        blocks = machine.view(place, dtype, rows * per_block).reshape(rows, per_block).astype(np.float64)
        np.testing.assert_allclose(blocks, np.repeat(values[:, None], per_block, axis=1), rtol=tolerance)


@pytest.mark.parametrize(
    ("rows", "columns", "instructions"),
    [
        (8, 128, {"Max": 1, "BlockReduceMax": 2, "Brcb": 2, "CopyUbToUb": 2, "Sub": 16, "Exp": 1}),
        (16, 32, {"WholeReduceMax": 1, "Brcb": 2, "CopyUbToUb": 2, "Sub": 4, "Exp": 1}),
        (1, 1000, {"BlockReduceMax": 1, "Max": 2, "WholeReduceMax": 1, "Sub": 1, "Exp": 1}),
    ],
)
def test_softmax_issues_the_published_instructions(
    machine: Machine, rows: int, columns: int, instructions: dict[str, int]
) -> None:
    # asc-devkit, impl/adv_api/detail/activation/softmax/membase/v220: NewReduceMaxLastNDImpl and its kin
    machine.reset()
    machine.put(SRC, np.ones(rows * columns, np.float32))
    machine.call("SoftMax float32", DST, OTHER, OTHER + 1024, SRC, rows, columns, columns, TMP, 8192)
    found = Counter(line.name for line in machine.trace())
    assert {name: found[name] for name in instructions} == instructions
    assert found["Div"] == found["Sub"]
    assert found["BlockReduceSum"] == found["BlockReduceMax"]


def test_softmax_of_long_rows_reaches_each_of_them(machine: Machine) -> None:
    """The second row begins 4128 floats behind the first one: more data blocks than a byte counts."""
    rows, columns = 2, 4128
    place, sums, maxima, work = 0, 48 * 1024, 50 * 1024, 52 * 1024
    machine.reset()
    machine.put(place, np.ones(rows * columns, np.float32))
    machine.call("SoftMax float32", place, sums, maxima, place, rows, columns, columns, work, 8192)
    rest = [line for line in machine.trace() if line.name == "Max"][-1]
    assert (place + 4096 * 4, (columns + 32) * 4) in rest.operands


def test_softmax_of_a_long_row_takes_as_many_repeats_as_an_instruction_has(machine: Machine) -> None:
    columns, place, work = 320 * 64, 64 * 1024, 160 * 1024
    machine.reset(192 * 1024)
    machine.put(place, np.ones(columns, np.float32))
    machine.call("SoftMax float32", place, DST, DST + 1024, place, 1, columns, columns, work, 8192)
    assert [line.repeats for line in machine.trace() if line.name == "Max"] == [255, 320 - 8 - 255]


def test_softmax_of_half_rows_works_with_room_for_one(machine: Machine) -> None:
    rows, columns = 5, 208
    source = (numbers("float32", rows * columns) / 100).astype(np.float16)
    results = []
    for scratch_bytes in (12 * 1024, 1376):
        machine.reset()
        machine.put(SRC, source)
        machine.call("SoftMax float16", DST, 8192, 12288, SRC, rows, columns, columns, TMP, scratch_bytes)
        results.append(machine.view(DST, "float16", rows * columns).copy())
    np.testing.assert_array_equal(*results)


def test_softmax_of_halves_rounds_ties_away_from_zero(machine: Machine) -> None:
    # asc-devkit, impl/adv_api/detail/activation/softmax/membase/v220: FLOAT2HALF_ROUND_MODE
    lower = -np.arange(1, 0x4900, dtype=np.uint16).view(np.float16)
    power = np.exp(lower.astype(np.float32))
    shares = np.stack([1 / (1 + power), power / (1 + power)])
    ties = np.flatnonzero(((shares.view(np.uint32) & 0x1FFF) == 0x1000).any(axis=0))
    results = {}
    for dtype in ("float32", "float16"):
        rows = np.full((ties.size, 16), -1000, dtype)
        rows[:, 0], rows[:, 1] = 0, lower[ties]
        machine.reset()
        machine.put(SRC, rows)
        machine.call(f"SoftMax {dtype}", DST, 20 * 1024, 21 * 1024, SRC, *rows.shape, 16, TMP, 12 * 1024)
        results[dtype] = machine.view(DST, dtype, rows.size).reshape(rows.shape)[:, :2].copy()
    wide, narrow = results["float32"], results["float16"]
    even = wide.astype(np.float16)
    tie = (wide.view(np.uint32) & 0x1FFF) == 0x1000
    up = tie & (even.astype(np.float32) < wide) & (wide >= 2**-14)
    assert up.any()
    np.testing.assert_array_equal(narrow[up], np.nextafter(even[up], np.float16(1)))
    np.testing.assert_array_equal(narrow[~tie], even[~tie])


def test_softmax_of_the_planned_shape_in_free_memory(machine: Machine) -> None:
    rows, columns = 12, 48
    source = numbers("float32", rows * columns) / 100
    machine.reset()
    machine.put(SRC, source)
    machine.call("SoftMax planned float32", DST, 0, 0, SRC, rows, columns, columns, TMP)
    powers = np.exp(source.reshape(rows, columns).astype(np.float64))
    result = machine.view(DST, "float32", rows * columns).reshape(rows, columns)
    np.testing.assert_allclose(result, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


def test_softmax_of_rows_in_two_pieces(machine: Machine) -> None:
    """A second piece leaves maxima and sums of both; the first is to be scaled by the factors."""
    rows, stride, columns = 11, 24, 20
    sums, maxima, factors = 4 * 1024, 6 * 1024, 8 * 1024
    pieces = [numbers("float32", rows * stride) / 300, numbers("float32", rows * stride)[::-1] / 200]
    machine.reset()
    results = []
    for update, piece in enumerate(pieces):
        machine.put(SRC, piece)
        places = (DST, sums, maxima, SRC, factors, sums, maxima)
        machine.call("SoftmaxFlashV2", *places, update, rows, stride, columns, TMP, 12 * 1024)
        results.append(machine.view(DST, "float32", rows * stride).reshape(rows, stride)[:, :columns].copy())
    scale, total = (
        machine.view(place, "float32", rows * 8).reshape(rows, 8)[:, :1] for place in (factors, sums)
    )
    whole = np.concatenate([piece.reshape(rows, stride)[:, :columns] for piece in pieces], axis=1)
    powers = np.exp(whole - whole.max(axis=1, keepdims=True), dtype=np.float64)
    computed = np.concatenate([results[0] * scale, results[1]], axis=1) / total
    np.testing.assert_allclose(computed, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)
    blocks = machine.view(maxima, "float32", rows * 8).reshape(rows, 8)
    np.testing.assert_array_equal(blocks, np.repeat(whole.max(axis=1)[:, None], 8, axis=1))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("only_sums", [False, True])
@pytest.mark.parametrize("scratch", [2 * 1024, 12 * 1024])
def test_softmax_gradient(machine: Machine, scratch: int, only_sums: bool, dtype: str) -> None:
    rows, stride, columns = 10, 80, 75
    value, slope = numbers(dtype, rows * stride) / 500, numbers(dtype, rows * stride)[::-1] / 400
    value, slope = value.astype(dtype), slope.astype(dtype)
    machine.reset()
    machine.put(SRC, value)
    machine.put(OTHER, slope)
    machine.call(f"SoftmaxGrad {dtype}", DST, OTHER, SRC, only_sums, rows, stride, columns, TMP, scratch)
    y, dy = (array.reshape(rows, stride)[:, :columns].astype(np.float64) for array in (value, slope))
    sums = (y * dy).sum(axis=1, keepdims=True)
    block = 32 // np.dtype(dtype).itemsize
    width = block if only_sums else stride
    result = machine.view(DST, dtype, rows * width).reshape(rows, width)
    expected = np.repeat(sums, block, axis=1) if only_sums else (dy - sums) * y
    tolerance = 1e-5 if dtype == "float32" else 1e-3
    np.testing.assert_allclose(result[:, : expected.shape[1]], expected, rtol=tolerance, atol=tolerance)


def test_softmax_names_the_scratch_it_needs(machine: Machine) -> None:
    machine.reset()
    with pytest.raises(MachineFault, match="temporary buffer has 128 bytes, but the call needs at least 544"):
        machine.call("SoftMax float32", DST, 4096, 8192, SRC, 1, 16, 16, TMP, 128)


def test_raw_transposition(machine: Machine) -> None:
    matrix = np.arange(256, dtype=np.uint16)
    machine.reset()
    machine.put(SRC, matrix)
    machine.call("raw transposition", DST, SRC)
    for place in (DST, DST + 512):
        result = machine.view(place, "uint16", 256).reshape(16, 16)
        np.testing.assert_array_equal(result, matrix.reshape(16, 16).T)


def test_addresses_count_bytes_and_their_offsets_elements(machine: Machine) -> None:
    machine.reset()
    machine.put(SRC, np.array([5, 6, 7, 8], dtype=np.uint32))
    machine.call("addresses", DST, SRC)
    assert machine.view(DST, "uint32", 2).tolist() == [12, 6]


def test_results_keep_infinities_and_nothing_else_can_be_asked_for(machine: Machine) -> None:
    machine.reset()
    machine.call("SetOverflow", 1)
    with pytest.raises(MachineFault, match="saturat"):
        machine.call("SetOverflow", 0)
