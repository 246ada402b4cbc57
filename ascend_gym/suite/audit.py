"""Proves that a case can tell a right output from a lazy one.

Each corruption below is a way in which a candidate could save work (or simply be wrong) and still hand in
something plausible. A case whose verdict accepts one of them rewards cheating: it is insensitive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ascend_gym.core.protocols import Oracle
from ascend_gym.core.records import Case, DType, OpSpec, TensorSpec
from ascend_gym.suite.compare import EXACT, compare
from ascend_gym.suite.inputs import Array, numpy_dtype
from ascend_gym.suite.oracle import oracle_for

Arrays = Sequence[Sequence[Array]]
Places = NDArray[np.int64]

_KEPT_SIGNIFICANT_BITS = 3
_CORES = 8
_TILE_SHARE = 1 / 64
_PROBED_ELEMS = 1 << 16


@dataclass(frozen=True)
class _Corruption:
    """A wrong output.

    Attributes:
        name: as a sentence begins.
        values: given the flat right output, indices into it and its number in a list of tensors: what stands
            there instead.
    """

    name: str
    values: Callable[[Array, Places, int], Array]


def audit_case(spec: OpSpec, case: Case, seed: int) -> list[str]:
    """Return what is wrong with a case; an empty list means that its verdict can be relied on.

    The rounded expectation itself must be accepted, inputs must follow from the seed, and the case must not
    be insensitive. Where nothing follows from the seed, some other case must have another answer.
    """
    oracle = oracle_for(spec)
    inputs = oracle.inputs(case, seed)
    expected = oracle.expected(case, inputs)
    complaints = _repeatability_complaints(oracle, spec, case, seed, inputs)
    accepted = oracle.judge(case, _right_outputs(case, expected), expected)
    if not accepted.correct:
        complaints.append(f"the reference itself is rejected: {accepted.message}")
    complaints += insensitivities(oracle, case, inputs, expected)
    complaints += _other_values_complaints(oracle, case, seed, expected)
    return [f"{spec.op_id}, case {case.case_id!r}: {complaint}" for complaint in complaints]


def insensitivities(oracle: Oracle, case: Case, inputs: Arrays, expected: Arrays) -> list[str]:
    """Return the wrong outputs that the verdict accepts, one sentence each.

    Every output is corrupted by itself, the others being right: zeros, ones, its mean, half or an eighth left
    undone, permuted, shifted, one core's part or one row for all, a copy of each input, lower precision.

    Args:
        oracle: judges.
        case: what is judged.
        inputs: for each input parameter, its arrays.
        expected: for each output parameter, its arrays as the reference gives them.
    """
    right = _right_outputs(case, expected)
    accepted = []
    for number, tensor in enumerate(case.outputs):
        if tensor.open or tensor.size_bytes == 0:
            continue
        label = f" as {tensor.name}" if len(case.outputs) > 1 else ""
        for corruption in _corruptions(case, tensor, inputs, right[number]):
            if _caught_at_once(case, tensor, right[number], expected[number], corruption):
                continue
            wrong = [_corrupted(array, index, corruption) for index, array in enumerate(right[number])]
            outputs = [*right[:number], wrong, *right[number + 1 :]]
            if oracle.judge(case, outputs, expected).correct and not _equal([wrong], [right[number]]):
                accepted.append(f"{corruption.name} is accepted as correct{label}")
    return accepted


def _right_outputs(case: Case, expected: Arrays) -> list[list[Array]]:
    """Return the expectations in the types of the outputs, zeros where an output is open."""
    with np.errstate(over="ignore", invalid="ignore"):
        return [
            [np.zeros(shape, numpy_dtype(tensor.dtype)) for shape in tensor.shapes]
            if tensor.open
            else [_rounded(array, tensor) for array in arrays]
            for tensor, arrays in zip(case.outputs, expected, strict=True)
        ]


def _rounded(array: Array, tensor: TensorSpec) -> Array:
    """Return an expectation in the type of its output; whole numbers are the nearest ones."""
    whole = not tensor.dtype.is_floating and array.dtype.kind == "f"
    return (np.rint(array) if whole else array).astype(numpy_dtype(tensor.dtype))


def _repeatability_complaints(
    oracle: Oracle, spec: OpSpec, case: Case, seed: int, inputs: Arrays
) -> list[str]:
    complaints = []
    if not _equal(oracle.inputs(case, seed), inputs):
        complaints.append("the same seed gives different inputs")
    if not _equal(oracle.inputs(case, seed + 1), inputs):
        return complaints
    if any(tensor.values.is_random for tensor in case.inputs if not tensor.optional_absent):
        complaints.append("another seed gives the same inputs")
    elif not any(_differ(case, other) for other in spec.cases):
        complaints.append(
            "nothing varies: no input is random, and no other case has other shapes or attributes"
        )
    return complaints


def _differ(case: Case, other: Case) -> bool:
    """Say whether a kernel that knows the answer of one case would fail on the other."""
    return (case.outputs, case.attributes) != (other.outputs, other.attributes)


def _other_values_complaints(oracle: Oracle, case: Case, seed: int, expected: Arrays) -> list[str]:
    """Return a sentence for each output that a kernel could have kept from inputs of another seed."""
    others = oracle.inputs(case, seed + 1)
    if _equal(others, oracle.inputs(case, seed)):
        return []
    right, kept = (_right_outputs(case, arrays) for arrays in (expected, oracle.expected(case, others)))
    complaints = []
    for number, tensor in enumerate(case.outputs):
        if tensor.open or tensor.size_bytes == 0 or _equal([kept[number]], [right[number]]):
            continue
        outputs = [*right[:number], kept[number], *right[number + 1 :]]
        if oracle.judge(case, outputs, expected).correct:
            label = f" as {tensor.name}" if len(case.outputs) > 1 else ""
            complaints.append(f"the answer to inputs of another seed is accepted as correct{label}")
    return complaints


def _corruptions(
    case: Case, tensor: TensorSpec, inputs: Arrays, right: Sequence[Array]
) -> Iterator[_Corruption]:
    yield _Corruption("an output of zeros", lambda flat, at, _: np.zeros_like(flat[at]))
    yield _Corruption("an output of ones", lambda flat, at, _: np.ones_like(flat[at]))
    yield _Corruption("a constant output (the mean)", lambda flat, at, _: np.full_like(flat[at], _mean(flat)))
    yield _Corruption("an output with its second half left at zero", _undone_from(0.5))
    yield _Corruption("an output with its last eighth left at zero", _undone_from(1 - 1 / _CORES))
    yield _Corruption("an output of its first tile only", _undone_from(_TILE_SHARE))
    yield _Corruption("a permutation of the expected output", lambda flat, at, _: flat[_permuted(at, flat)])
    yield _Corruption("the expected output shifted by one", lambda flat, at, _: flat[(at + 1) % flat.size])
    yield _Corruption("one core's part for all", lambda flat, at, _: flat[at % max(1, flat.size // _CORES)])
    if all(len(shape) > 1 for shape in tensor.shapes):
        yield _Corruption("one row for all", lambda flat, at, number: flat[at % tensor.shapes[number][-1]])
    for source, arrays in zip(case.inputs, inputs, strict=True):
        if [array.size for array in arrays] == [array.size for array in right]:
            yield _Corruption(f"a copy of input {source.name}", _copy_of(arrays))
    if tensor.dtype.is_floating and tensor.dtype is not DType.COMPLEX64:
        yield _Corruption(f"an output of {_KEPT_SIGNIFICANT_BITS} significant bits", _coarsened)
    if tensor.dtype is DType.FLOAT32:
        yield _Corruption("a float32 output of float16 precision", _through_float16)


def _mean(flat: Array) -> complex | float:
    wide = np.complex128 if flat.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        mean: complex | float = flat.astype(wide).mean()
    return mean if np.isfinite(mean) else 0.0


def _undone_from(share: float) -> Callable[[Array, Places, int], Array]:
    def values(flat: Array, at: Places, _: int) -> Array:
        changed: Array = flat[at]
        changed[at >= int(share * flat.size)] = 0
        return changed

    return values


def _permuted(at: Places, flat: Array) -> Places:
    """Return where a permutation takes its elements from: steps that share no factor with the size."""
    step = max(1, int(flat.size * 0.618))
    while math.gcd(step, flat.size) != 1:
        step += 1
    return (at * step + 1) % flat.size


def _copy_of(arrays: Sequence[Array]) -> Callable[[Array, Places, int], Array]:
    def values(flat: Array, at: Places, number: int) -> Array:
        with np.errstate(all="ignore"):
            elements = arrays[number].reshape(-1)[at]
            copied: Array = (elements if flat.dtype.kind == "c" else elements.real).astype(flat.dtype)
        return copied

    return values


def _coarsened(flat: Array, at: Places, _: int) -> Array:
    mantissa, exponent = np.frexp(flat[at].astype(np.float64))
    scale = 2.0**_KEPT_SIGNIFICANT_BITS
    with np.errstate(over="ignore"):
        coarse: Array = np.ldexp(np.rint(mantissa * scale) / scale, exponent).astype(flat.dtype)
    return coarse


def _through_float16(flat: Array, at: Places, _: int) -> Array:
    with np.errstate(over="ignore"):
        return flat[at].astype(np.float16).astype(flat.dtype)


def _caught_at_once(
    case: Case,
    tensor: TensorSpec,
    right: Sequence[Array],
    expected: Sequence[Array],
    corruption: _Corruption,
) -> bool:
    """Whether a sample of the elements has a gross error, with which no verdict accepts the whole."""
    if tensor.dtype is DType.COMPLEX64:
        return False
    tolerance = case.tolerance.get(tensor.dtype, EXACT)
    for number, (array, want) in enumerate(zip(right, expected, strict=True)):
        at = np.linspace(0, array.size - 1, min(array.size, _PROBED_ELEMS)).astype(np.int64)
        if at.size == 0:
            continue
        got = corruption.values(array.reshape(-1), at, number)
        if compare(got, want.reshape(-1)[at], tensor.dtype, tolerance).gross:
            return True
    return False


def _corrupted(array: Array, number: int, corruption: _Corruption) -> Array:
    if array.size == 0:
        return array
    everywhere = np.arange(array.size, dtype=np.int64)
    return corruption.values(array.reshape(-1), everywhere, number).reshape(array.shape)


def _equal(left: Arrays, right: Arrays) -> bool:
    """Say whether two sets of arrays are equal bit by bit."""
    return all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for row, other in zip(left, right, strict=True)
        for a, b in zip(row, other, strict=True)
    )
