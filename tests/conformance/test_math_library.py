"""The math library against numpy: values, chunking by scratch, tails and instruction counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import erf, erfc, inf, lgamma, log, nan, pi, tan

import numpy as np
import pytest
from vector_machine import Array, Machine, MachineFault, build_machine

SRC, DST, TMP = 0, 16 * 1024, 32 * 1024
OTHER = 8 * 1024
RUNTIME = [
    "math_elementary",
    "math_sequences",
    "math_gamma",
    "math_rounding",
    "math_trigonometric",
    "math_power",
    "vector_elementwise",
    "vector_cast",
    "vector_compare",
]
Reference = Callable[[Array], Array]


def _gelu(x: Array) -> Array:
    result: Array = x / (1 + np.exp(-np.sqrt(8 / np.pi) * (x + 0.044715 * x**3)))
    return result


def _faster_gelu(x: Array) -> Array:
    result: Array = x / (1 + np.exp(-1.702 * x))
    return result


def _faster_gelu_v2(x: Array) -> Array:
    curve = -0.1444 * (np.minimum(np.abs(0.7071 * x), 1.769) - 1.769) ** 2 + 0.5
    return x * (np.where(x >= 0, 1, -1) * curve + 0.5)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _digamma(x: float) -> float:
    if x < 0:
        return _digamma(1 - x) - pi / tan(pi * x)
    if x < 20:
        return _digamma(x + 1) - 1 / x
    return log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4)


# Name: reference in float64, lowest and highest input, absolute error allowed in float32.
FUNCTIONS: dict[str, tuple[Reference, float, float, float]] = {
    "Tanh": (np.tanh, -12, 12, 2e-7),
    "Sigmoid": (_sigmoid, -20, 20, 2e-7),
    "Silu": (lambda x: x * _sigmoid(x), -20, 20, 4e-6),
    "Gelu": (_gelu, -8, 8, 2e-6),
    "FasterGelu": (_faster_gelu, -8, 8, 2e-6),
    "FasterGeluV2": (_faster_gelu_v2, -6, 6, 2e-6),
    "Log2": (np.log2, 0.01, 100, 1e-6),
    "Log10": (np.log10, 0.01, 100, 1e-6),
    "Exp": (np.exp, -10, 4, 1e-5),
    "Floor": (np.floor, -50, 50, 0),
    "Ceil": (np.ceil, -50, 50, 0),
    "Round": (np.rint, -50, 50, 0),
    "Rint": (np.rint, -50, 50, 0),
    "Trunc": (np.trunc, -50, 50, 0),
    "Frac": (lambda x: x - np.trunc(x), -50, 50, 0),
    "Sign": (np.sign, -3, 3, 0),
    "Sin": (np.sin, -300, 300, 2e-6),
    "Cos": (np.cos, -300, 300, 2e-6),
    "Tan": (np.tan, -1.5, 1.5, 2e-5),
    "Asin": (np.arcsin, -1, 1, 1e-6),
    "Acos": (np.arccos, -1, 1, 1e-6),
    "Atan": (np.arctan, -40, 40, 1e-6),
    "Sinh": (np.sinh, -6, 6, 2e-4),
    "Cosh": (np.cosh, -6, 6, 2e-4),
    "Asinh": (np.arcsinh, -40, 40, 2e-6),
    "Acosh": (np.arccosh, 1.1, 40, 2e-6),
    "Atanh": (np.arctanh, -0.9, 0.9, 1e-6),
    "Erf": (np.vectorize(erf), -6, 6, 1e-6),
    "Erfc": (np.vectorize(erfc), -4, 6, 1e-6),
    "Lgamma": (np.vectorize(lgamma), 0.1, 30, 1e-5),
    "Digamma": (np.vectorize(_digamma), 0.1, 30, 2e-6),
}


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Machine:
    return build_machine("math", RUNTIME, request.config.cache.mkdir("vector_machine"))


def samples(name: str, dtype: str, count: int) -> Array:
    """Return inputs in the range of a function, its end points and special points among them."""
    _, low, high, _ = FUNCTIONS[name]
    rng = np.random.default_rng(count)
    points = [value for value in (low, high, 0.0, 0.5, -0.5, 1.5, -1.5, 2.5) if low <= value <= high]
    return np.concatenate([points, rng.uniform(low, high, count)])[:count].astype(dtype)


def evaluate(machine: Machine, name: str, values: Array, scratch_bytes: int) -> Array:
    """Apply a function in a machine of its own and return the result."""
    machine.reset()
    machine.put(SRC, values)
    guard = values.nbytes
    machine.ub[DST + guard : DST + guard + 64] = 0xA5
    machine.call(f"{name} {values.dtype.name}", DST, SRC, TMP, scratch_bytes, values.size)
    assert (machine.ub[DST + guard : DST + guard + 64] == 0xA5).all(), "wrote past the last element"
    result: Array = machine.view(DST, values.dtype, values.size).copy()
    return result


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float_values(machine: Machine, name: str) -> None:
    reference, _, _, tolerance = FUNCTIONS[name]
    values = samples(name, "float32", 1000)
    result = evaluate(machine, name, values, 0)
    expected = reference(values.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=tolerance)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_half_values(machine: Machine, name: str) -> None:
    reference, _, _, tolerance = FUNCTIONS[name]
    values = samples(name, "float16", 1000)
    expected = reference(values.astype(np.float64)).astype(np.float16)
    result = evaluate(machine, name, values, 0)
    atol = 0 if tolerance == 0 else 2e-3
    rtol = 0 if tolerance == 0 else 1e-2
    np.testing.assert_allclose(result.astype(np.float32), expected.astype(np.float32), rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("count", [1, 7, 64, 130, 511])
@pytest.mark.parametrize("name", ["Tanh", "Sin", "Sign", "Erfc"])
def test_scratch_only_changes_the_chunks(machine: Machine, name: str, count: int, dtype: str) -> None:
    values = samples(name, dtype, count)
    whole = evaluate(machine, name, values, 0)
    instructions = len(machine.trace())
    for scratch_bytes in (8192, 2048, 1024, 320):
        chunked = evaluate(machine, name, values, scratch_bytes)
        np.testing.assert_array_equal(whole, chunked)
        assert len(machine.trace()) >= instructions


def test_results_may_replace_the_source_where_the_page_lets_them(machine: Machine) -> None:
    for name in ("Gelu", "FasterGelu", "FasterGeluV2", "Trunc", "Round", "Rint"):
        values = samples(name, "float32", 200)
        apart = evaluate(machine, name, values, 0)
        machine.reset()
        machine.put(SRC, values)
        machine.call(f"{name} float32", SRC, SRC, TMP, 0, values.size)
        in_place = machine.view(SRC, "float32", values.size)
        np.testing.assert_array_equal(apart, in_place, err_msg=name)


def test_too_little_scratch_is_a_fault(machine: Machine) -> None:
    with pytest.raises(MachineFault, match="temporary buffer has 32 bytes, but the call needs at least 192"):
        evaluate(machine, "Sin", samples("Sin", "float32", 8), 32)


def test_tanh_is_seven_instructions_and_casts_for_half(machine: Machine) -> None:
    evaluate(machine, "Tanh", samples("Tanh", "float32", 64), 4096)
    body = ["Mins", "Maxs", "Muls", "Exp", "Adds", "Adds", "Div"]
    assert [line.name for line in machine.trace()] == body
    evaluate(machine, "Tanh", samples("Tanh", "float16", 64), 4096)
    assert [line.name for line in machine.trace()] == ["Cast", *body, "Cast"]


def kinds(machine: Machine) -> Counter[str]:
    """Count the instructions of the trace by name."""
    return Counter(line.name for line in machine.trace())


def counted(text: str) -> Counter[str]:
    """Read counts such as "12 Mul, 1 Abs"."""
    pairs = (item.split() for item in text.split(", "))
    return Counter({name: int(number) for number, name in pairs})


# asc-devkit, impl/adv_api/detail: math/<name>/<name>_common_impl.h, activation/gelu/gelu_impl.h (dav-2201).
PUBLISHED = {
    ("Acos", "float32"): "21 Mul, 9 Muls, 20 Adds, 2 Sqrt, 1 Mins, 2 Cast, 1 Add, 1 Abs, 1 Div",
    ("Acos", "float16"): "20 Mul, 9 Muls, 20 Adds, 1 Sqrt, 1 Mins, 8 Cast, 1 Add, 2 Abs, 1 Div",
    ("Atan", "float32"): "27 Mul, 7 Muls, 29 Adds, 1 Mins, 1 Maxs, 5 Abs, 4 Div, 3 Min",
    ("Erfc", "float16"): "14 Mul, 3 Muls, 15 Adds, 2 Mins, 1 Maxs, 1 Abs, 2 Div, 1 Exp, 1 Add, 2 Cast",
    ("Gelu", "float16"): "3 Mul, 3 Muls, 1 Add, 1 Mins, 2 Exp, 1 Abs, 1 Adds, 1 Div",
    ("Sin", "float32"): "6 Mul, 9 Muls, 4 Sub, 5 Adds, 1 Add, 2 Cast",
    ("Sign", "float32"): "3 Duplicate, 2 Compare, 2 SetCmpMask, 2 Select, 1 Add",
}


@pytest.mark.parametrize(("name", "dtype"), PUBLISHED)
def test_the_published_instructions_are_traced(machine: Machine, name: str, dtype: str) -> None:
    evaluate(machine, name, samples(name, dtype, 64), 16 * 1024)
    assert kinds(machine) == counted(PUBLISHED[name, dtype])


def test_scratch_is_divided_into_published_rounds(machine: Machine) -> None:
    # acos_common_impl.h: a quarter of the buffer's floats, a sixth of its halves, in whole multiples of 32
    evaluate(machine, "Acos", samples("Acos", "float32", 1500), 16 * 1024)
    assert [line.repeats for line in machine.trace() if line.name == "Sqrt"] == [16, 16, 8, 8]
    evaluate(machine, "Acos", samples("Acos", "float16", 300), 3 * 1024)
    assert [line.repeats for line in machine.trace() if line.name == "Div"] == [2, 1]


# Temporary tensors of the library, of floats: by how many it divides its buffer (asc-devkit, adv_api/detail).
TEMPORARIES = {"Lgamma": 8, "Digamma": 7, "Atan": 5, "Erfc": 5, "Asin": 4, "Tan": 4, "Sin": 3, "Exp": 3}
TEMPORARIES |= {"FasterGeluV2": 3, "Sign": 3, "Gelu": 2, "Cosh": 2, "Acosh": 1}
LEFT, LOST = 0x5A, 0xFF


def written(machine: Machine, tmp_bytes: int) -> Array:
    """Return which bytes of the temporary buffer instructions of the trace write."""
    found = np.zeros(tmp_bytes, bool)
    for first, extent in (line.operands[0] for line in machine.trace() if line.name != "SetCmpMask"):
        if TMP <= first < TMP + tmp_bytes:
            found[first - TMP : first - TMP + extent] = True
    return found


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("tmp_bytes", [700, 4352, 24 * 1024])
@pytest.mark.parametrize("name", TEMPORARIES)
def test_what_a_function_writes_into_the_buffer_is_lost(
    machine: Machine, name: str, tmp_bytes: int, dtype: str
) -> None:
    """Our formulas need less of it than the library, whose rounds are priced."""
    values = samples(name, dtype, 450)
    machine.reset()
    machine.put(SRC, values)
    machine.ub[TMP : TMP + tmp_bytes + 256] = LEFT
    machine.call(f"{name} {dtype}", DST, SRC, TMP, tmp_bytes, values.size)
    buffer = machine.ub[TMP : TMP + tmp_bytes]
    mask = written(machine, tmp_bytes)
    assert mask.any()
    assert (buffer[mask] == LOST).all()
    assert (machine.ub[TMP + tmp_bytes : TMP + tmp_bytes + 256] == LEFT).all()
    if dtype == "float32":
        parts = TEMPORARIES[name]
        of_round = tmp_bytes // 4 // parts // 32 * 32
        for part in range(parts if of_round else 0):
            first = part * of_round * 4
            assert (buffer[first : first + 4 * min(of_round, values.size)] == LOST).all()


@pytest.mark.parametrize("tmp", [SRC, SRC + 736, DST - 64, DST + 480])
def test_the_buffer_must_not_be_that_of_an_operand(machine: Machine, tmp: int) -> None:
    machine.reset()
    with pytest.raises(MachineFault, match="Erfc: an operand overlaps the temporary buffer"):
        machine.call("Erfc float32", DST, SRC, tmp, 4 * 1024, 200)
    machine.call("Erfc float32", DST, SRC, SRC + 800, 4 * 1024, 200)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("form", ["tensor", "scalar exponent", "scalar base"])
def test_what_power_writes_into_the_buffer_is_lost(machine: Machine, form: str, dtype: str) -> None:
    machine.reset()
    tmp_bytes, count = 20 * 1024, 300
    machine.ub[TMP : TMP + tmp_bytes] = LEFT
    places = [0x3C00 if form == "scalar base" else SRC, 0x3C00 if form == "scalar exponent" else OTHER]
    machine.call(f"Power {form} {dtype}", DST, *places, TMP, tmp_bytes, count)
    buffer = machine.ub[TMP : TMP + tmp_bytes]
    assert (buffer[written(machine, tmp_bytes)] == LOST).all()
    parts = 7 if dtype == "float16" else 4 if form == "tensor" else 5
    of_round = (tmp_bytes - 256) // 4 // parts // 32 * 32
    for part in range(parts):
        first = 256 + part * of_round * 4
        assert (buffer[first : first + 4 * count] == LOST).all()
    machine.reset()
    with pytest.raises(MachineFault, match="Power: an operand overlaps the temporary buffer"):
        machine.call(f"Power {form} {dtype}", TMP + 512, *places, TMP, tmp_bytes, count)


def call_power(machine: Machine, form: str, base: Array, exponent: Array, count: int) -> Array:
    """Raise tensors or scalars (arrays of one element) to a power."""
    machine.reset()
    places = []
    for operand, offset, is_scalar in (
        (base, SRC, form == "scalar base"),
        (exponent, OTHER, form == "scalar exponent"),
    ):
        machine.put(offset, operand)
        places.append(int.from_bytes(operand.tobytes(), "little") if is_scalar else offset)
    machine.call(f"Power {form} {base.dtype.name}", DST, *places, TMP, 5 * 1024, count)
    result: Array = machine.view(DST, base.dtype, count).copy()
    return result


@pytest.mark.parametrize("form", ["tensor", "scalar exponent", "scalar base"])
@pytest.mark.parametrize(("dtype", "rtol"), [("float16", 1e-2), ("float32", 1e-5)])
def test_power_of_floats(machine: Machine, form: str, dtype: str, rtol: float) -> None:
    rng = np.random.default_rng(3)
    count = 300
    base = rng.uniform(-3, 3, count).astype(dtype)
    exponent = rng.integers(-3, 4, count).astype(dtype)
    base[:6], exponent[:6] = [0, 0, 1, -2, 2, 3], [0, 2, 7, 0.5, 0.5, 1]
    if form == "scalar base":
        base = np.array([1.5], dtype)
    if form == "scalar exponent":
        exponent = np.array([3], dtype)
    result = call_power(machine, form, base, exponent, count)
    with np.errstate(all="ignore"):
        expected = np.power(base.astype(np.float64), exponent.astype(np.float64)).astype(dtype)
    np.testing.assert_allclose(
        result.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=rtol * 1e-2
    )


@pytest.mark.parametrize("form", ["tensor", "scalar exponent", "scalar base"])
def test_power_of_integers_is_exact(machine: Machine, form: str) -> None:
    rng = np.random.default_rng(4)
    count = 100
    base = rng.integers(-9, 10, 1 if form == "scalar base" else count).astype(np.int32)
    exponent = rng.integers(0, 9, 1 if form == "scalar exponent" else count).astype(np.int32)
    result = call_power(machine, form, base, exponent, count)
    np.testing.assert_array_equal(result, np.broadcast_to(base.astype(np.int64) ** exponent, count))


@pytest.mark.parametrize(("dtype", "instructions"), [("float16", 48), ("float32", 45)])
def test_power_issues_the_published_instructions(machine: Machine, dtype: str, instructions: int) -> None:
    # asc-devkit, impl/adv_api/detail/math/power/power_float_impl.h
    call_power(machine, "tensor", np.ones(64, dtype), np.ones(64, dtype), 64)
    assert len(machine.trace()) == instructions
    assert kinds(machine)["CompareScalar"] == 9


def test_gamma_functions_of_negative_and_special_values(machine: Machine) -> None:
    values = np.array([-0.5, -1.25, -3.75, -20.5, -7.001, 1, 2, 1e30], np.float32)
    result = evaluate(machine, "Lgamma", values, 0)
    np.testing.assert_allclose(result, [lgamma(float(x)) for x in values], rtol=1e-6, atol=1e-7)
    result = evaluate(machine, "Digamma", values[:-1], 0)
    np.testing.assert_allclose(result, [_digamma(float(x)) for x in values[:-1]], rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(evaluate(machine, "Lgamma", values[5:7], 0), 0)
    special = np.array([0, -2, inf, -inf, nan, -9e6], np.float32)
    np.testing.assert_array_equal(evaluate(machine, "Lgamma", special, 0), [inf, inf, inf, inf, nan, inf])
    np.testing.assert_array_equal(evaluate(machine, "Digamma", special, 0), [-inf, nan, inf, nan, nan, nan])
