"""Proves that a case can tell a right output from a lazy one.

Each corruption below is a way in which a candidate could save work (or simply be wrong) and still hand in
something plausible. A case whose verdict accepts one of them rewards cheating; ``audit_case`` names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ascend_gym.core.protocols import Oracle
from ascend_gym.core.records import Case, DType, OpSpec
from ascend_gym.suite.inputs import Array, numpy_dtype
from ascend_gym.suite.oracle import oracle_for

Arrays = list[list[Array]]

_KEPT_SIGNIFICANT_BITS = 3


def audit_case(spec: OpSpec, case: Case, seed: int) -> list[str]:
    """Return what is wrong with a case; an empty list means that its verdict can be relied on.

    The rounded expectation itself must be accepted; zeros, ones, a constant, a copy of an input, a
    permutation of the expectation, a half-done output and an output of lower precision must be rejected.
    """
    oracle = oracle_for(spec)
    inputs = oracle.inputs(case, seed)
    expected = oracle.expected(case, inputs)
    honest = [
        [array.astype(numpy_dtype(tensor.dtype)) for array in arrays]
        for tensor, arrays in zip(case.outputs, expected, strict=True)
    ]
    complaints = _repeatability_complaints(oracle, case, seed, inputs)
    accepted = oracle.judge(case, honest, expected)
    if not accepted.correct:
        complaints.append(f"the reference itself is rejected: {accepted.message}")
    for name, corrupted in _corruptions(case, inputs, honest):
        if not _equal(corrupted, honest) and oracle.judge(case, corrupted, expected).correct:
            complaints.append(f"{name} is accepted as correct")
    return [f"{spec.op_id}, case {case.case_id!r}: {complaint}" for complaint in complaints]


def _repeatability_complaints(
    oracle: Oracle, case: Case, seed: int, inputs: Sequence[Sequence[Array]]
) -> list[str]:
    complaints = []
    if not _equal(oracle.inputs(case, seed), inputs):
        complaints.append("the same seed gives different inputs")
    if _equal(oracle.inputs(case, seed + 1), inputs):
        complaints.append("another seed gives the same inputs")
    return complaints


def _corruptions(
    case: Case, inputs: Sequence[Sequence[Array]], honest: Arrays
) -> Iterator[tuple[str, Arrays]]:
    yield "an output of zeros", _each(honest, np.zeros_like)
    yield "an output of ones", _each(honest, np.ones_like)
    yield "a constant output (the mean)", _each(honest, _filled_with_mean)
    yield "an output with its second half left at zero", _each(honest, _half_done)
    yield "a permutation of the expected output", _each(honest, _permuted)
    for tensor, arrays in zip(case.inputs, inputs, strict=True):
        copy = _copied(honest, arrays)
        if copy is not None:
            yield f"a copy of input {tensor.name}", copy
    dtypes = {tensor.dtype for tensor in case.outputs}
    if all(dtype.is_floating for dtype in dtypes):
        yield f"an output of {_KEPT_SIGNIFICANT_BITS} significant bits", _each(honest, _coarsened)
    if dtypes == {DType.FLOAT32}:
        yield "a float32 output of float16 precision", _each(honest, _through_float16)


def _each(arrays: Arrays, change: Callable[[Array], Array]) -> Arrays:
    return [[change(array) for array in row] for row in arrays]


def _filled_with_mean(array: Array) -> Array:
    mean = array.astype(np.float64).mean() if array.size else 0.0
    filled: Array = np.full_like(array, mean)
    return filled


def _half_done(array: Array) -> Array:
    changed: Array = array.copy()
    changed.reshape(-1)[array.size // 2 :] = 0
    return changed


def _permuted(array: Array) -> Array:
    order = np.random.Generator(np.random.Philox(array.size)).permutation(array.size)
    shuffled: Array = array.reshape(-1)[order]
    return shuffled.reshape(array.shape)


def _copied(honest: Arrays, source: Sequence[Array]) -> Arrays | None:
    """Return the outputs filled with an input, or ``None`` where the numbers of elements differ."""
    sizes = [array.size for array in source]
    if any([array.size for array in row] != sizes for row in honest):
        return None
    return [
        [given.astype(array.dtype).reshape(array.shape) for array, given in zip(row, source, strict=True)]
        for row in honest
    ]


def _coarsened(array: Array) -> Array:
    mantissa, exponent = np.frexp(array.astype(np.float64))
    scale = 2.0**_KEPT_SIGNIFICANT_BITS
    coarse: Array = np.ldexp(np.rint(mantissa * scale) / scale, exponent)
    return coarse.astype(array.dtype)


def _through_float16(array: Array) -> Array:
    with np.errstate(over="ignore"):
        return array.astype(np.float16).astype(array.dtype)


def _equal(left: Sequence[Sequence[Array]], right: Sequence[Sequence[Array]]) -> bool:
    """Say whether two sets of arrays are equal bit by bit."""
    return all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for row, other in zip(left, right, strict=True)
        for a, b in zip(row, other, strict=True)
    )
