"""Element-by-element comparison of one tensor with its expectation, in one chunked pass.

Two-byte floating outputs are compared in float32, whose 24 bits leave 13 below an fp16 output and 16 below
a bfloat16 one; everything else in float64. Integer outputs with a zero tolerance are compared exactly.

The upstream rule is applied to the expectation as the reference gives it, rounded to the output dtype only
for bfloat16, whose rounding alone exceeds the upstream loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ascend_gym.core.records import DType, Tolerance
from ascend_gym.suite.inputs import Array, numpy_dtype

CHUNK_ELEMS = 1 << 15  # what a pass over them needs stays in a second-level cache
GROSS_FACTOR = 10.0

UPSTREAM_LOSS = 1e-3
UPSTREAM_MINIMUM = 1e-9

_LARGEST_FINITE = {
    DType.FLOAT16: 65504.0,
    DType.BFLOAT16: (2.0 - 2.0**-7) * 2.0**127,
    DType.FLOAT32: (2.0 - 2.0**-23) * 2.0**127,
}

_HALF_INFINITY = 0x7C00 << 13  # bits of infinity, moved to where single precision has its exponent
_HALF_SCALE = np.float32(2.0 ** (127 - 15))  # what the exponent then is too small by

EXACT = Tolerance(atol=0.0, rtol=0.0)


@dataclass
class Tally:
    """What a comparison found; indices are flat.

    Attributes:
        size: elements compared.
        row_elems: extent of the last axis.
        bad: elements outside their bound.
        gross: elements outside ten times their bound, or with another NaN / Inf pattern.
        first_bad: index of the first bad element, -1 if none.
        last_bad: index of the last bad element, -1 if none.
        first_bad_column: smallest last-axis index of any bad element.
        max_abs_error: largest absolute error; Inf where a NaN or Inf does not match.
        max_rel_error: largest error relative to the larger magnitude, as upstream defines it.
        nans: elements that are NaN where the expectation is not.
        upstream_atol_bad: elements with an absolute error above the upstream loss.
        upstream_rtol_bad: elements with a relative error above the upstream loss.
        output_range: smallest and largest output; NaN if there is one.
        expected_range: smallest and largest expectation; NaN if there is one.
    """

    size: int
    row_elems: int
    bad: int = 0
    gross: int = 0
    first_bad: int = -1
    last_bad: int = -1
    first_bad_column: int = -1
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    nans: int = 0
    upstream_atol_bad: int = 0
    upstream_rtol_bad: int = 0
    output_range: tuple[float, float] = (math.inf, -math.inf)
    expected_range: tuple[float, float] = (math.inf, -math.inf)

    @property
    def bad_share(self) -> float:
        """Share of elements outside their bound."""
        return self.bad / self.size if self.size else 0.0

    @property
    def upstream_passes(self) -> bool:
        """The rule of the cann-ops scripts: it fails only if both counts exceed the allowed share."""
        allowed = self.size * UPSTREAM_LOSS
        return self.upstream_rtol_bad <= allowed or self.upstream_atol_bad <= allowed


def compare(output: Array, expected: Array, dtype: DType, tolerance: Tolerance) -> Tally:
    """Count the elements of ``output`` that differ from ``expected``.

    Args:
        output: what a kernel wrote, of any shape, in the type that stands for ``dtype``.
        expected: what the reference says, of the same shape; float64 where the outputs are rounded.
        dtype: element type of the output.
        tolerance: which differences count.
    """
    got, want = output.reshape(-1), expected.reshape(-1)
    tally = Tally(size=got.size, row_elems=output.shape[-1] if output.ndim else 1)
    exact = not dtype.is_floating and tolerance == EXACT
    width = np.float32 if dtype in (DType.FLOAT16, DType.BFLOAT16) else np.float64
    with np.errstate(all="ignore"):
        for start in range(0, got.size, CHUNK_ELEMS):
            part = slice(start, start + CHUNK_ELEMS)
            if exact:
                _add_exact(tally, start, got[part], want[part].astype(got.dtype, copy=False))
            else:
                chunk = _widened_to(width, got[part]), want[part].astype(width, copy=False)
                _add_floating(tally, start, *chunk, dtype, tolerance)
    return tally


def _widened_to(width: type[np.floating[Any]], values: Array) -> Array:
    """Return ``values.astype(width)``; from half to single precision by their bits: in half the time."""
    if values.dtype != np.float16 or width is not np.float32:
        return values.astype(width)
    bits = values.view(np.uint16).astype(np.uint32)
    magnitude = (bits & 0x7FFF) << 13
    if magnitude.max() >= _HALF_INFINITY:
        return values.astype(width)
    wide = magnitude.view(np.float32)
    wide *= _HALF_SCALE  # exact, for subnormal numbers too
    bits &= 0x8000
    bits <<= 16
    magnitude |= bits
    return wide


def _add_exact(tally: Tally, start: int, got: Array, want: Array) -> None:
    bad = got != want
    count = _note_bad(tally, start, bad)
    if count:
        error = np.abs(got[bad].astype(np.float64) - want[bad].astype(np.float64))
        tally.max_abs_error = max(tally.max_abs_error, float(error.max()))
        tally.max_rel_error = max(tally.max_rel_error, 1.0)
    tally.gross += count
    tally.upstream_atol_bad += count
    tally.upstream_rtol_bad += count
    _widen_ranges(tally, got, want)


def _add_floating(
    tally: Tally, start: int, got: Array, want: Array, dtype: DType, tolerance: Tolerance
) -> None:
    magnitude = np.abs(want)
    if not magnitude.max() <= _LARGEST_FINITE.get(dtype, math.inf):
        # NaN, Inf, or overflow to Inf in the output dtype: that pattern must match
        want = _rounded(want, dtype)
        magnitude = np.abs(want)
        magnitude[~np.isfinite(magnitude)] = 0.0
    error = _errors(got, want)
    worst = error.max()
    if not worst <= tolerance.atol:  # else no bound is exceeded, which is at least that
        bound = magnitude * want.dtype.type(tolerance.rtol)
        bound += want.dtype.type(tolerance.atol)
        if _note_bad(tally, start, error > bound):
            if np.isinf(worst):
                tally.nans += int(np.count_nonzero(np.isnan(got) & ~np.isnan(want)))
            bound *= GROSS_FACTOR
            tally.gross += int(np.count_nonzero(error > bound))
    tally.max_abs_error = max(tally.max_abs_error, float(worst))
    _widen_ranges(tally, got, want)
    if dtype is DType.BFLOAT16:
        want = _rounded(want, dtype)
        error, magnitude = _errors(got, want), np.abs(want)
        worst = error.max()
    _apply_upstream_rule(tally, error, worst, np.maximum(magnitude, np.abs(got), out=magnitude))


def _rounded(values: Array, dtype: DType) -> Array:
    return values.astype(numpy_dtype(dtype)).astype(values.dtype)


def _errors(got: Array, want: Array) -> Array:
    """Return absolute errors; equal NaN / Inf patterns count as 0, unequal ones as Inf."""
    error: Array = np.subtract(got, want)
    np.abs(error, out=error)
    if not np.isfinite(error.max()):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        error[np.isnan(error)] = np.inf
        error[same] = 0.0
    return error


def _apply_upstream_rule(tally: Tally, error: Array, worst: np.floating[Any], scale: Array) -> None:
    """Count violations of the upstream bounds; ``error`` and ``scale`` are overwritten.

    Args:
        tally: counts them.
        error: absolute errors.
        worst: the largest of them.
        scale: the larger magnitude of output and expectation.
    """
    if not worst <= UPSTREAM_LOSS:
        tally.upstream_atol_bad += int(np.count_nonzero(error > UPSTREAM_LOSS))
    scale += scale.dtype.type(UPSTREAM_MINIMUM)
    np.divide(error, scale, out=error)
    worst = error.max()
    if np.isnan(worst):
        error[np.isnan(error)] = np.inf
        worst = error.dtype.type(math.inf)
    if worst > UPSTREAM_LOSS:
        tally.upstream_rtol_bad += int(np.count_nonzero(error > UPSTREAM_LOSS))
    tally.max_rel_error = max(tally.max_rel_error, float(worst))


def _note_bad(tally: Tally, start: int, bad: Array) -> int:
    count = int(np.count_nonzero(bad))
    if count:
        indices = np.flatnonzero(bad) + start
        column = int((indices % tally.row_elems).min())
        if tally.first_bad < 0:
            tally.first_bad = int(indices[0])
            tally.first_bad_column = column
        tally.first_bad_column = min(tally.first_bad_column, column)
        tally.last_bad = int(indices[-1])
        tally.bad += count
    return count


def _widen_ranges(tally: Tally, got: Array, want: Array) -> None:
    tally.output_range = _widened(tally.output_range, got)
    tally.expected_range = _widened(tally.expected_range, want)


def _widened(old: tuple[float, float], values: Array) -> tuple[float, float]:
    """Return the range that also covers ``values``; a NaN stays."""
    low = float(np.minimum(old[0], values.min()))
    return low, float(np.maximum(old[1], values.max()))
