"""What the softmax family shares: shapes that it refuses, sequences, rounding, the temporary buffer."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from composed_machine import RUNTIME
from vector_machine import Array, Machine, MachineFault, TraceLine, build_machine

KB = 1024
UB = 256 * KB
SRC, DST, SUMS, MAXIMA, TMP = 0, 64 * KB, 128 * KB, 132 * KB, 136 * KB
LEFT = 0x5A  # in every byte of the temporary buffer before the call
LOST = 0xFF
FLOATS = ("float32", "float16")
CALLS = {
    "SoftMax": FLOATS,
    "SoftMax without sums": FLOATS,
    "LogSoftMax": FLOATS,
    "SimpleSoftMax": FLOATS,
    "SoftmaxGrad": FLOATS,
    "SoftmaxGrad noted": FLOATS,
    "AdjustSoftMaxRes": FLOATS,
    "SoftmaxFlashV2": ("float32",),
}
NAMES = [f"{name} {dtype}" for name, dtypes in CALLS.items() for dtype in dtypes]


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Machine:
    return build_machine("softmax", RUNTIME, request.config.cache.mkdir("vector_machine"))


def call(
    machine: Machine, name: str, shape: tuple[int, int, int, int], tmp_bytes: int, tmp: int = TMP
) -> None:
    """Run a call on (srcM, srcK, oriSrcM, oriSrcK)."""
    machine.call(name, DST, SUMS, MAXIMA, SRC, *shape, tmp, tmp_bytes)


def instructions(machine: Machine) -> list[TraceLine]:
    return [line for line in machine.trace() if line.name != "PipeBarrier"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(1, 16, 1, 2048), (2, 64, 3, 64)])
def test_no_more_counts_than_there_is(machine: Machine, shape: tuple[int, int, int, int], name: str) -> None:
    machine.reset(UB)
    rows, columns, counting, of = shape
    told = f"{name.split()[0]}: {counting} rows of {of} elements count .* there are only {rows} of {columns} "
    with pytest.raises(MachineFault, match=told):
        call(machine, name, shape, 60 * KB)
    assert instructions(machine) == []


@pytest.mark.parametrize(
    "name", [*(name for name in NAMES if "Adjust" not in name), "SimpleSoftMax of float sums"]
)
@pytest.mark.parametrize("shape", [(8, 0, 8, 0), (0, 64, 0, 64)])
def test_rows_of_nothing_are_a_fault(machine: Machine, shape: tuple[int, int, int, int], name: str) -> None:
    machine.reset(UB)
    with pytest.raises(MachineFault, match=f"{name.split()[0]}: an extent is 0, expected at least 1"):
        call(machine, name, shape, 4 * KB)


@pytest.mark.parametrize("name", [name for name in NAMES if "Simple" not in name and "Adjust" not in name])
def test_each_call_names_itself_where_its_buffer_is_too_small(machine: Machine, name: str) -> None:
    machine.reset(UB)
    with pytest.raises(MachineFault, match=f"^{name.split()[0]}: the temporary buffer has 128 bytes"):
        call(machine, name, (8, 64, 8, 64), 128)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("SoftMax float32", (16, 32)),
        ("SoftMax float32", (8, 128)),
        ("SoftMax float16", (64, 32)),
        ("SoftMax float16", (1, 2048)),
        ("SoftMax without sums float32", (64, 32)),
        ("SoftMax without sums float16", (20, 208)),
        ("LogSoftMax float32", (64, 32)),
        ("LogSoftMax float16", (9, 80)),
    ],
)
@pytest.mark.parametrize("tmp_bytes", [10 * KB, 60 * KB])
def test_what_the_sequence_writes_into_the_buffer_is_lost(
    machine: Machine, name: str, shape: tuple[int, int], tmp_bytes: int
) -> None:
    """Values take eight rows at a time, but the price is that of as many as the buffer holds."""
    machine.reset(UB)
    machine.ub[TMP : TMP + tmp_bytes + KB] = LEFT
    call(machine, name, (*shape, *shape), tmp_bytes)
    written = [line.operands[0] for line in instructions(machine)]
    inside = [(first, first + extent) for first, extent in written if first >= TMP]
    end = max(stop for _, stop in inside)
    assert min(start for start, _ in inside) >= TMP
    assert (machine.ub[TMP:end] == LOST).all()
    assert (machine.ub[TMP + tmp_bytes : TMP + tmp_bytes + KB] == LEFT).all()
    rows = max(line.repeats for line in instructions(machine) if line.name == "Brcb") if shape[0] > 1 else 1
    assert 256 * rows <= end - TMP <= tmp_bytes


@pytest.mark.parametrize("tmp", [SRC + 64, DST - KB, SUMS - KB])
@pytest.mark.parametrize("name", ["SoftMax float32", "SoftMax float16", "LogSoftMax float32"])
def test_the_buffer_must_not_be_that_of_an_operand(machine: Machine, name: str, tmp: int) -> None:
    machine.reset(UB)
    with pytest.raises(MachineFault, match="an operand overlaps the temporary buffer"):
        call(machine, name, (16, 64, 16, 64), 30 * KB, tmp)


def _softmax(x: Array, columns: int) -> Array:
    y = x.astype(float)
    powers = np.exp(y - y[:, :columns].max(axis=1, keepdims=True))
    return np.asarray(powers / powers[:, :columns].sum(axis=1, keepdims=True))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["SoftMax", "LogSoftMax"])
def test_padding_is_computed_as_whole_rows_are(machine: Machine, name: str, dtype: str) -> None:
    """The page: results overwrite what lies in the destination where the source is padded."""
    x = np.random.default_rng(1).uniform(-2, 2, (11, 64)).astype(dtype)
    machine.reset(UB)
    machine.put(SRC, x)
    machine.view(DST, dtype, x.size)[:] = 7
    call(machine, f"{name} {dtype}", (11, 64, 11, 50), 20 * KB)
    expected = _softmax(x, 50)
    expected = np.log10(expected) if name == "LogSoftMax" else expected
    tolerance = 4e-6 if dtype == "float32" else 2e-3
    result = machine.view(DST, dtype, x.size).reshape(x.shape)
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["SoftMax", "LogSoftMax"])
def test_sums_of_halves_are_rounded_away_from_zero_at_ties(machine: Machine, name: str) -> None:
    """2049 lies between two halves; FLOAT2HALF_ROUND_MODE of asc-devkit (softmax, v220) is CAST_ROUND."""
    x = np.full((1, 2064), -65504, np.float16)
    x[0, :2049] = 0
    machine.reset(UB)
    machine.put(SRC, x)
    call(machine, f"{name} float16", (1, 2064, 1, 2064), 30 * KB)
    np.testing.assert_array_equal(machine.view(SUMS, "float16", 16), 2050)
    np.testing.assert_array_equal(machine.view(MAXIMA, "float16", 16), 0)


def test_sums_of_the_gradient_of_halves_are_rounded_likewise(machine: Machine) -> None:
    x = np.zeros((1, 2064), np.float16)
    x[0, :2049] = 1
    machine.reset(UB)
    machine.put(SRC, x)
    call(machine, "SoftmaxGradFront float16", (1, 2064, 1, 2064), 60 * KB)
    np.testing.assert_array_equal(machine.view(DST, "float16", 16), 2050)


# Counted in asc-devkit, adv_api/detail/activation/softmax/membase: SoftMax and LogSoftMaxGenericNDImpl.
COLUMNS = {"WholeReduceMax": 1, "WholeReduceSum": 1, "Sub": 4, "Exp": 1, "Div": 4, "CopyUbToUb": 2}
LOGARITHM = {"Ln": 4, "Muls": 4}
PUBLISHED = {
    "SoftMax float16": {**COLUMNS, "Brcb": 4, "Cast": 4},
    "SoftMax without sums float16": {**COLUMNS, "Brcb": 2, "Cast": 2},
    "LogSoftMax float16": {**COLUMNS, **LOGARITHM, "Brcb": 4, "Cast": 4},
    "LogSoftMax float32": {**COLUMNS, **LOGARITHM, "Brcb": 2},
}


@pytest.mark.parametrize(("name", "expected"), PUBLISHED.items())
@pytest.mark.parametrize("tmp_bytes", [60 * KB, 10 * KB])
def test_short_rows_take_the_published_instructions(
    machine: Machine, name: str, expected: dict[str, int], tmp_bytes: int
) -> None:
    """64 rows of 32: a row has 64 floats of the buffer, 8 or 16 for its number, and those of half 32 more."""
    machine.reset(UB)
    number = 16 if expected.get("Cast") == 4 else 8
    fitting = tmp_bytes // 4 // (64 + number + (32 if "float16" in name else 0))
    rounds = -(-64 // min(64, fitting // 8 * 8))
    call(machine, name, (64, 32, 64, 32), tmp_bytes)
    found = Counter(line.name for line in instructions(machine))
    assert found == {kind: number * rounds for kind, number in expected.items()}


def test_one_long_row_of_half_copies_its_numbers(machine: Machine) -> None:
    """No broadcast of a single row, but both data blocks of its number."""
    machine.reset(UB)
    call(machine, "LogSoftMax float16", (1, 2048, 1, 2048), 60 * KB)
    body = ["BlockReduceMax", "Max", "WholeReduceMax", "CopyUbToUb", "Cast", "Sub", "Exp"]
    tail = ["BlockReduceSum", "Add", "WholeReduceSum", "CopyUbToUb", "Cast", "Div", "Ln", "Muls", "Cast"]
    assert [line.name for line in instructions(machine)] == ["Cast", *body, *tail]
