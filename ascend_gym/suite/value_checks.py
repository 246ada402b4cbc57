"""Checks that tensors can be filled as a range of values says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePosixPath

import numpy as np

from ascend_gym.core.records import DType, ValueRange
from ascend_gym.suite.inputs import numpy_dtype

DATA_SUFFIXES = (".npy", ".bin")
UNSIGNED = (DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64, DType.BOOL)

_LIMITS = {DType.BOOL: (0, 1), DType.INT4: (-8, 7)}  # of types that numpy does not know as integers
_LARGEST = {DType.FLOAT16: 65504.0}  # of floating types with another range than float32
_DRAWN = ("uniform", "normal", "integers")


def check_values(values: ValueRange, dtype: DType, shapes: Sequence[tuple[int, ...]]) -> None:
    """Return if tensors of the given type and shapes can be filled with ``values``.

    Raises:
        ValueError: they cannot; the message says why.
    """
    if values.kind != "fixed" and values.contents:
        raise ValueError("values: 'contents' belongs to kind = 'fixed'")
    if values.kind != "file" and values.file:
        raise ValueError("values: 'file' belongs to kind = 'file'")
    if values.distinct and values.kind not in _DRAWN:
        raise ValueError(f"values: 'distinct' belongs to kinds {', '.join(_DRAWN)}")
    if values.kind in _DRAWN:
        _check_range(values, dtype)
    elif values.kind == "fixed":
        _check_contents(values, dtype, shapes)
    elif values.kind == "file":
        _check_file(values)
    for injection in values.inject:
        _check_number(injection.value, dtype, "inject")
    if values.rows:
        _check_rows(values, dtype, shapes)


def _check_range(values: ValueRange, dtype: DType) -> None:
    kind, low, high = values.kind, values.low, values.high
    largest = _LARGEST.get(dtype, float(np.finfo(np.float32).max))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(
            f"values: low and high are finite, got {low} and {high}; 'inject' puts in NaN and infinity"
        )
    if dtype.is_floating and max(abs(low), abs(high)) > largest:
        raise ValueError(f"values: {dtype.value} has no numbers beyond {largest:g}, got {low} and {high}")
    if kind == "normal":
        if not (dtype.is_floating and high > 0):
            raise ValueError("values: 'normal' needs a floating dtype and a positive deviation 'high'")
        return
    whole = kind == "integers" or not dtype.is_floating
    if math.ceil(low) > math.floor(high) if whole else low > high:
        raise ValueError(f"values: no {'whole ' if whole else ''}number lies in [{low}, {high}]")
    if dtype in UNSIGNED and low < 0:
        raise ValueError(f"values: {dtype.value} cannot hold numbers down to {low}")
    if whole and not dtype.is_floating:
        _check_number(math.ceil(low), dtype, "low")
        _check_number(math.floor(high), dtype, "high")


def _check_rows(values: ValueRange, dtype: DType, shapes: Sequence[tuple[int, ...]]) -> None:
    largest = _LARGEST.get(dtype, float(np.finfo(np.float32).max))
    for row in values.rows:
        for number in (row.offset, *row.values):
            _check_number(number, dtype, row.kind)
            if math.isfinite(number) and abs(number) > largest and dtype.is_floating:
                raise ValueError(f"rows: {dtype.value} has no numbers beyond {largest:g}, got {number:g}")
        if row.kind == "ends" and values.kind not in ("uniform", "integers"):
            raise ValueError(
                f"rows: 'ends' needs a range with ends, 'uniform' or 'integers', not {values.kind}"
            )
    for shape in shapes:
        axes = [axis % len(shape) for axis in values.axes if -len(shape) <= axis < len(shape)]
        if shape and len({*axes}) != len(values.axes):
            raise ValueError(f"rows: {list(values.axes)} are not different axes of the shape {list(shape)}")
        if values.groups > 1 and (not axes or shape[axes[0]] % values.groups):
            raise ValueError(f"rows: the axes {axes} of {list(shape)} have no {values.groups} equal parts")


def _check_contents(values: ValueRange, dtype: DType, shapes: Sequence[tuple[int, ...]]) -> None:
    given, parts = len(values.contents), 2 if dtype is DType.COMPLEX64 else 1
    count = sum(math.prod(shape) for shape in shapes)
    if given not in (1, parts * count):
        what = "the tensors of the list have" if len(shapes) > 1 else "the tensor has"
        twice = ", real and imaginary part of each" if parts == 2 else ""
        raise ValueError(
            f"values: 'fixed' needs as many 'contents' as {what} elements ({count}{twice}), or one for all; "
            f"got {given}"
        )
    for number in values.contents:
        _check_number(number, dtype, "contents")


def _check_file(values: ValueRange) -> None:
    path = PurePosixPath(values.file)
    if not values.file or path.is_absolute() or ".." in path.parts or path.parts[0] != "data":
        raise ValueError(f"values: 'file' lies below data/ in the operator folder, got {values.file!r}")
    if path.suffix not in DATA_SUFFIXES:
        raise ValueError(f"values: 'file' ends in {' or '.join(DATA_SUFFIXES)}, got {values.file!r}")


def _check_number(number: float, dtype: DType, key: str) -> None:
    if dtype.is_floating:
        return
    if not math.isfinite(number) or number != int(number):
        raise ValueError(f"values: {key}: {dtype.value} cannot hold {number}")
    limits = _LIMITS.get(dtype)
    if limits is None:
        info = np.iinfo(numpy_dtype(dtype))
        limits = (int(info.min), int(info.max))
    if not limits[0] <= number <= limits[1]:
        raise ValueError(f"values: {key}: {dtype.value} cannot hold {number}")
