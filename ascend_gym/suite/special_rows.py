"""Special rows of inputs: what ``ValueRange.rows`` says, put over what was drawn or made."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ascend_gym.core.records import Case, SpecialRows, TensorSpec, ValueRange
from ascend_gym.suite.inputs import Array, raw_words, words_of

_LOTS = 1 << 16


def with_special_rows(case: Case, seed: int, tensor: TensorSpec, index: int, array: Array) -> Array:
    """Return a read-only array in which the rows are of the declared kinds in turn, in random order.

    Every kind occurs where there are rows enough; the ordinary row is one of them.

    Args:
        case: whose input it is.
        seed: of what is drawn.
        tensor: says which rows.
        index: position in a list of tensors.
        array: holds ordinary rows.
    """
    values = tensor.values
    if not values.rows or array.size == 0:
        return array
    words = words_of("rows", case, seed, tensor.name, index)
    axes = [axis % array.ndim for axis in values.axes] if array.ndim else []
    order = [axis for axis in range(array.ndim) if axis not in axes] + axes
    moved = array.transpose(order)
    row_elems = math.prod(array.shape[axis] for axis in axes) // (values.groups if axes else 1)
    rows = np.array(moved, order="C").reshape(-1, row_elems)
    kinds = len(values.rows) + 1
    places = raw_words(words, len(rows)).argsort(kind="stable")
    first = int(raw_words(words, 1)[0] % np.uint64(kinds))
    for number, special in enumerate(values.rows):
        chosen = places[(number - first) % kinds :: kinds]
        if chosen.size:
            rows[chosen] = _special(special, values, rows[chosen], words)
    result = np.ascontiguousarray(rows.reshape(moved.shape).transpose(np.argsort(order)))
    result.flags.writeable = False
    return result


def _special(special: SpecialRows, values: ValueRange, rows: Array, words: np.random.Philox) -> Array:
    """Return what stands in place of ordinary rows, of shape (rows, elements of a row)."""
    count, row_elems = rows.shape
    if (special.scale, special.offset) != (1.0, 0.0):
        with np.errstate(over="ignore", invalid="ignore"):
            wide = np.complex128 if rows.dtype.kind == "c" else np.float64
            rows = (rows.astype(wide) * special.scale + special.offset).astype(rows.dtype)
    with np.errstate(over="ignore"):
        numbers = np.array(special.values, np.float64).astype(rows.dtype)
    if special.kind == "equal":
        rows[:] = rows[:, :1].copy()
    elif special.kind == "ties":
        several = min(special.count, row_elems)
        chosen = _lots(words, rows) % np.uint16(several)
        rows = np.take_along_axis(rows[:, :several], chosen.astype(np.intp), axis=1)
    elif special.kind == "one":
        places = (raw_words(words, count) % np.uint64(row_elems)).astype(np.int64)
        places[: numbers.size] = row_elems - 1
        places[numbers.size : 2 * numbers.size] = 0
        rows[np.arange(count), places] = numbers[np.arange(count) % numbers.size]
    elif special.kind == "some":
        lots = _lots(words, rows)
        there = lots <= np.uint16(special.share * (_LOTS - 1))
        there[np.arange(count), lots.argmin(axis=1)] = True
        rows = np.where(there, numbers[lots % np.uint16(numbers.size)], rows)
    elif special.kind == "ends":
        ends = np.array([math.ceil(values.low), math.floor(values.high)])
        if values.kind == "uniform" and rows.dtype.kind not in "iu":
            ends = np.array([values.low, values.high])
        rows = ends.astype(rows.dtype)[_lots(words, rows) & np.uint16(1)]
    return rows


def _lots(words: np.random.Philox, rows: Array) -> NDArray[np.uint16]:
    """Return a random number below ``_LOTS`` for each element."""
    return raw_words(words, -(-rows.size // 4)).view(np.uint16)[: rows.size].reshape(rows.shape)
