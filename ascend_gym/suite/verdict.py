"""Decides whether the outputs of a case agree with the reference, and says what is wrong if not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Verdict
from ascend_gym.core.records import Case, DType, TensorSpec, Tolerance
from ascend_gym.suite.compare import EXACT, GROSS_FACTOR, Tally, compare
from ascend_gym.suite.inputs import Array, numpy_dtype

# distance from 1 to the next number, and how many such steps count as a varying expectation
_EPSILON = {DType.FLOAT16: 2.0**-10, DType.BFLOAT16: 2.0**-7, DType.FLOAT32: 2.0**-23}
_SMALLEST = {DType.FLOAT16: 2.0**-24, DType.BFLOAT16: 2.0**-133, DType.FLOAT32: 2.0**-149}  # subnormal
_SPREAD_ULPS = 16.0


def judge(case: Case, outputs: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array]]) -> Verdict:
    """Compare the outputs of a case with their expectations.

    An output is accepted when its dtype and shape are right, at most ``max_bad_share`` of its elements are
    outside ``atol + rtol * |expected|``, none is outside ten times that, NaN and Inf appear exactly where
    expected (after rounding to the output dtype), and it is not constant where the expectation varies.

    Args:
        case: fixes names, dtypes, shapes and tolerances of the outputs.
        outputs: for each output parameter, its arrays as computed.
        expected: for each output parameter, its arrays as the reference gives them (of any float width);
            those of open outputs are not looked at.

    Raises:
        MisuseError: ``expected`` does not match the case, or a floating output has no tolerance.
    """
    expected = [[] if tensor.open else arrays for tensor, arrays in zip(case.outputs, expected, strict=True)]
    _check_expected(case, expected)
    mismatch = _layout_mismatch(case, outputs)
    if mismatch:
        return Verdict(False, math.inf, math.inf, 1.0, False, mismatch)
    tallies: list[Tally] = []
    complaints: list[str] = []
    for label, tensor, got, want in _tensors(case, outputs, expected):
        tolerance = _tolerance(case, tensor)
        tally = compare(got, want, tensor.dtype, tolerance)
        tallies.append(tally)
        complaint = _complaint(tally, tolerance, tensor.dtype, got, want)
        if complaint:
            complaints.append(f"output {label}: {complaint}")
    return Verdict(
        correct=not complaints,
        max_abs_error=max((tally.max_abs_error for tally in tallies), default=0.0),
        max_rel_error=max((tally.max_rel_error for tally in tallies), default=0.0),
        bad_share=max((tally.bad_share for tally in tallies), default=0.0),
        upstream_rule_passes=all(tally.upstream_passes for tally in tallies),
        message="; ".join(complaints) if complaints else "all outputs agree with the reference",
    )


def _tensors(
    case: Case, outputs: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array]]
) -> Iterator[tuple[str, TensorSpec, Array, Array]]:
    for tensor, arrays, wanted in zip(case.outputs, outputs, expected, strict=True):
        if tensor.open:
            continue
        if tensor.dtype is DType.COMPLEX64:
            arrays, wanted = [_parts(array) for array in arrays], [_parts(array) for array in wanted]
        for index, (got, want) in enumerate(zip(arrays, wanted, strict=True)):
            yield (f"{tensor.name}[{index}]" if tensor.dynamic else tensor.name), tensor, got, want


def _parts(array: Array) -> Array:
    """Return real and imaginary parts along a last axis of two."""
    return np.stack([array.real, array.imag], axis=-1)


def _tolerance(case: Case, tensor: TensorSpec) -> Tolerance:
    tolerance = case.tolerance.get(tensor.dtype)
    if tolerance is None and tensor.dtype.is_floating:
        raise MisuseError(
            f"case {case.case_id!r} has no tolerance for {tensor.dtype.value} output {tensor.name!r}"
        )
    return tolerance or EXACT


def _check_expected(case: Case, expected: Sequence[Sequence[Array]]) -> None:
    shapes = [tuple(array.shape for array in arrays) for arrays in expected]
    wanted = [() if tensor.open else tensor.shapes for tensor in case.outputs]
    if shapes != wanted:
        raise MisuseError(f"case {case.case_id!r}: expectations have shapes {shapes}, the case says {wanted}")


def _layout_mismatch(case: Case, outputs: Sequence[Sequence[Array]]) -> str | None:
    if len(outputs) != len(case.outputs):
        return f"expected {len(case.outputs)} output parameters, got {len(outputs)}"
    for tensor, arrays in zip(case.outputs, outputs, strict=True):
        shapes = tuple(array.shape for array in arrays)
        if shapes != tensor.shapes:
            return f"output {tensor.name}: expected shapes {tensor.shapes}, got {shapes}"
        for array in arrays:
            if array.dtype != numpy_dtype(tensor.dtype):
                return f"output {tensor.name}: expected dtype {tensor.dtype.value}, got {array.dtype}"
    return None


def _complaint(tally: Tally, tolerance: Tolerance, dtype: DType, got: Array, want: Array) -> str | None:
    if tally.gross == 0 and tally.bad_share <= tolerance.max_bad_share:
        return _constant_complaint(tally, dtype)
    where = tuple(int(axis) for axis in np.unravel_index(tally.first_bad, got.shape))
    parts = [
        f"{tally.bad} of {tally.size} elements differ by more than {tolerance.atol:g} + "
        f"{tolerance.rtol:g} * |expected| (allowed: {math.floor(tolerance.max_bad_share * tally.size)}, "
        f"none by more than {GROSS_FACTOR:g} times that; {tally.gross} do)",
        f"first at {list(where)}: got {got[where]!s}, expected {want[where]!s}",
    ]
    hint = _hint(tally, got, want)
    return ", ".join([*parts, hint] if hint else parts)


def _hint(tally: Tally, got: Array, want: Array) -> str | None:
    """Name the pattern of the bad elements when it is a well-known one."""
    if tally.nans == 0:
        return _pattern(tally)
    question = "never written, or computed from what is uninitialised?"
    if tally.nans == tally.size:
        return f"every element is nan: {question}"
    runs = _runs(np.isnan(got) & ~np.isnan(want))
    told = f"{tally.nans} elements are nan where the expectation is not, {runs}"
    pattern = _pattern(tally)
    return f"{told}; {pattern}" if pattern else f"{told}: {question}"


def _runs(mask: Array) -> str:
    """Tell how the elements that ``mask`` marks, one at least, lie in the flat tensor."""
    edges = np.flatnonzero(np.diff(mask.reshape(-1), prepend=False, append=False))
    begins, ends = edges[::2], edges[1::2]
    if begins.size == 1:
        return f"in one run from element {begins[0]} of {mask.size} on"
    return f"in {begins.size} runs of {_span(ends - begins)} elements, {_span(np.diff(begins))} apart"


def _span(values: Array) -> str:
    low, high = int(values.min()), int(values.max())
    return f"{low}" if low == high else f"{low} to {high}"


def _pattern(tally: Tally) -> str | None:
    low, high = tally.output_range
    if low == high and tally.size > 1:
        return f"every element of the output is {low:g}"
    if tally.bad == tally.size:
        return "every element is wrong"
    if tally.last_bad == tally.size - 1 and tally.bad == tally.size - tally.first_bad:
        if 2 * tally.bad > tally.size:
            return f"the last {tally.bad} elements are bad: do all blocks write to the beginning?"
        return f"the bad elements are one block at the end: a tail of {tally.bad} elements never written?"
    if tally.bad > 1 and tally.first_bad_column > 0:
        return (
            f"all bad elements lie at or after index {tally.first_bad_column} of the last axis "
            f"(extent {tally.row_elems}): is the tail of each row handled?"
        )
    return None


def _constant_complaint(tally: Tally, dtype: DType) -> str | None:
    """Refuse a constant where the expectation varies, however wide the tolerance is."""
    low, high = tally.expected_range
    resolution = max(_EPSILON.get(dtype, 0.0) * max(abs(low), abs(high)), _SMALLEST.get(dtype, 0.0))
    varies = high - low > _SPREAD_ULPS * resolution
    if varies and tally.output_range[0] == tally.output_range[1]:
        return f"every element is {tally.output_range[0]:g} where the expectation spans {low:g} to {high:g}"
    return None
