from __future__ import annotations

import math

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ascend_gym.core.records import Case, DType, TensorSpec, Tolerance
from ascend_gym.suite.compare import compare
from ascend_gym.suite.inputs import Array, numpy_dtype
from ascend_gym.suite.verdict import judge

FLOATS = st.sampled_from([DType.FLOAT16, DType.FLOAT32, DType.BFLOAT16])
HALF_STEP = {DType.FLOAT16: 2.0**-11, DType.BFLOAT16: 2.0**-8, DType.FLOAT32: 2.0**-24}
VALUES = st.floats(min_value=-1e4, max_value=1e4, width=32)
EXPECTED = arrays(np.float64, array_shapes(min_dims=1, max_dims=3, max_side=9), elements=VALUES)
ANY_EXPECTED = arrays(
    np.float64,
    array_shapes(min_dims=1, max_dims=3, max_side=9),
    elements=st.floats(width=32) | st.sampled_from([np.nan, np.inf, -np.inf, 65519.0, 65520.0, -7e4]),
)


def case_of(dtype: DType, shape: tuple[int, ...], tolerance: Tolerance) -> Case:
    tensor = TensorSpec(name="y", dtype=dtype, shapes=(shape,))
    return Case(case_id="c", inputs=(tensor,), outputs=(tensor,), tolerance={dtype: tolerance})


def rounded(expected: Array, dtype: DType) -> Array:
    with np.errstate(over="ignore"):
        return expected.astype(numpy_dtype(dtype))


@given(expected=ANY_EXPECTED, dtype=FLOATS)
@example(expected=np.array([0.0, 1.18e-38]), dtype=DType.FLOAT16)  # rounds to zeros
def test_rounding_to_the_output_dtype_is_always_accepted(expected: Array, dtype: DType) -> None:
    # a little more than half a step, and the smallest subnormal numbers of fp16
    tolerance = Tolerance(atol=1e-7, rtol=HALF_STEP[dtype] * 1.01)
    verdict = judge(case_of(dtype, expected.shape, tolerance), [[rounded(expected, dtype)]], [[expected]])
    assert verdict.correct, verdict.message
    assert verdict.bad_share == 0.0


@given(data=st.data(), expected=EXPECTED, dtype=FLOATS)
def test_one_element_far_off_is_refused_and_named(data: st.DataObject, expected: Array, dtype: DType) -> None:
    tolerance = Tolerance(atol=1e-2, rtol=1e-2, max_bad_share=0.5)
    flat = data.draw(st.integers(0, expected.size - 1))
    output = rounded(expected, dtype)
    old = float(output.reshape(-1)[flat])
    outward = math.copysign(1.0, old)
    bad = data.draw(st.sampled_from([2.0 * old + outward, -old - outward, np.nan, np.inf]))
    output.reshape(-1)[flat] = bad
    verdict = judge(case_of(dtype, expected.shape, tolerance), [[output]], [[expected]])
    assert not verdict.correct
    assert f"first at {[int(i) for i in np.unravel_index(flat, expected.shape)]}" in verdict.message
    assert f"1 of {expected.size}" in verdict.message


@given(expected=EXPECTED, noise=st.integers(0, 2**32 - 1), scale=st.floats(0.0, 4.0))
def test_the_verdict_is_the_rule_of_the_tolerance(expected: Array, noise: int, scale: float) -> None:
    tolerance = Tolerance(atol=1e-3, rtol=1e-3, max_bad_share=0.25)
    random = np.random.default_rng(noise)
    bound = tolerance.atol + tolerance.rtol * np.abs(expected)
    output = (expected + random.uniform(-scale, scale, expected.shape) * bound).astype(np.float32)
    error = np.abs(output.astype(np.float64) - expected)
    if np.any(np.abs(error - bound) < 1e-12) or output.min() == output.max():
        return  # exactly on a bound, or the constant rule
    wanted = np.mean(error > bound) <= tolerance.max_bad_share and not np.any(error > 10.0 * bound)
    verdict = judge(case_of(DType.FLOAT32, expected.shape, tolerance), [[output]], [[expected]])
    assert verdict.correct == wanted
    assert verdict.max_abs_error == error.max()


@given(
    shape=array_shapes(min_dims=1, max_dims=2, min_side=4, max_side=40),
    constant=st.floats(-4.0, 4.0, width=16),
    atol=st.floats(0.0, 10.0),
)
@settings(max_examples=50)
def test_no_tolerance_accepts_a_constant_for_varying_values(
    shape: tuple[int, ...], constant: float, atol: float
) -> None:
    expected = np.linspace(-1.0, 1.0, int(np.prod(shape))).reshape(shape)
    output = np.full(shape, constant, dtype=np.float16)
    tolerance = Tolerance(atol=atol, rtol=0.0)
    assert not judge(case_of(DType.FLOAT16, shape, tolerance), [[output]], [[expected]]).correct


def plain_tally(output: Array, expected: Array, dtype: DType, tolerance: Tolerance) -> dict[str, object]:
    """Count what ``compare`` counts, in the order of its definition and with nothing left out."""
    width = np.float32 if dtype in (DType.FLOAT16, DType.BFLOAT16) else np.float64
    got, want = output.astype(width).reshape(-1), expected.astype(width).reshape(-1)
    raw = want
    if not np.abs(want).max() <= LARGEST_FINITE[dtype]:
        raw = rounded(want, dtype).astype(width)
    magnitude = np.where(np.isfinite(raw), np.abs(raw), width(0))
    error = plain_errors(got, raw)
    bound = magnitude * width(tolerance.rtol) + width(tolerance.atol)
    bad = np.flatnonzero(error > bound)
    if dtype is DType.BFLOAT16:
        raw = rounded(raw, dtype).astype(width)
        upstream, magnitude = plain_errors(got, raw), np.abs(raw)
    else:
        upstream = error
    relative = upstream / (np.maximum(magnitude, np.abs(got)) + width(1e-9))
    relative = np.where(np.isnan(relative), np.inf, relative)
    return {
        "size": got.size,
        "bad": bad.size,
        "gross": np.count_nonzero(error > bound * 10.0),
        "first_bad": bad[0] if bad.size else -1,
        "last_bad": bad[-1] if bad.size else -1,
        "max_abs_error": float(error.max()),
        "max_rel_error": float(relative.max()),
        "upstream_atol_bad": np.count_nonzero(upstream > 1e-3),
        "upstream_rtol_bad": np.count_nonzero(relative > 1e-3),
        "output_range": (float(got.min()), float(got.max())),
    }


def plain_errors(got: Array, want: Array) -> Array:
    error: Array = np.abs(got - want)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error)).astype(got.dtype)


LARGEST_FINITE = {
    DType.FLOAT16: 65504.0,
    DType.BFLOAT16: (2.0 - 2.0**-7) * 2.0**127,
    DType.FLOAT32: (2.0 - 2.0**-23) * 2.0**127,
}
BITS = {DType.FLOAT16: np.uint16, DType.BFLOAT16: np.uint16, DType.FLOAT32: np.uint32}


@given(
    data=st.data(),
    dtype=FLOATS,
    count=st.integers(1, 60),
    tolerance=st.builds(
        Tolerance,
        atol=st.sampled_from([0.0, 1e-7, 1e-3, 0.1]),
        rtol=st.sampled_from([0.0, 1e-3, 0.5]),
    ),
    near=st.booleans(),
)
@settings(max_examples=400)
def test_a_comparison_finds_what_its_definition_says(
    data: st.DataObject, dtype: DType, count: int, tolerance: Tolerance, near: bool
) -> None:
    """All bit patterns, subnormal numbers, NaN and Inf among them; near the expectation, or anything."""
    kind = BITS[dtype]
    patterns = arrays(kind, count, elements=st.integers(0, int(np.iinfo(kind).max)))
    output = data.draw(patterns).view(numpy_dtype(dtype))
    with np.errstate(all="ignore"):
        steps = data.draw(patterns).view(numpy_dtype(dtype)).astype(np.float64)
        expected = output.astype(np.float64) * (1.0 + steps % 1e-2) if near else steps
        expected = expected.astype(np.float32 if dtype is not DType.FLOAT32 else np.float64)
        wanted = plain_tally(output, expected, dtype, tolerance)
    tally = compare(output, expected, dtype, tolerance)
    found = {name: getattr(tally, name) for name in wanted}
    np.testing.assert_equal(found, wanted)
