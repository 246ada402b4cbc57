"""Seeded inputs: the same case and seed give the same bytes on every platform.

Only the raw words of the Philox counter generator are used (their stream is fixed), and everything
after them is elementwise IEEE arithmetic or a table look-up, so that no library's choice of algorithm
can move a bit. Two-byte floating types draw from 65,536 evenly spaced quantiles, which is finer than
their own resolution over most of the range and costs one table look-up per element.
"""

from __future__ import annotations

import itertools
import math
import mmap
from functools import lru_cache
from pathlib import Path
from statistics import NormalDist
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ascend_gym.core.digest import Encoded, digest_of, encoded
from ascend_gym.core.errors import InfrastructureError, OperatorFormatError
from ascend_gym.core.records import Case, DType, Injection, TensorSpec, ValueRange

Array: TypeAlias = NDArray[Any]

_QUANTILES = 1 << 16
_PART_ELEMS = 1 << 16
_OTHER_DTYPES = {DType.BFLOAT16: ml_dtypes.bfloat16, DType.INT4: ml_dtypes.int4}


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """Return the numpy dtype of an element type (``ml_dtypes.bfloat16`` for bfloat16, ``int4`` likewise)."""
    name: Any = _OTHER_DTYPES.get(dtype, dtype.value)
    resolved: np.dtype[Any] = np.dtype(name)
    return resolved


def stored_array(array: Array) -> Array:
    """Return an array as memory of the device holds it, in the same shape.

    Of int4, two elements share a byte, the first its low half: shape ``(ceil(size / 2),)``.
    """
    array = np.ascontiguousarray(array)
    if array.dtype != ml_dtypes.int4:
        return array
    halves = np.zeros(array.size + array.size % 2, np.uint8)
    halves[: array.size] = array.ravel().astype(np.int8).view(np.uint8) & 0xF
    return halves[::2] | halves[1::2] << 4


def array_bytes(array: Array) -> memoryview:
    """Return the elements of an array, one after the other."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def write_array(path: Path, array: Array) -> None:
    """Write the elements of an array, one after the other.

    Raises:
        InfrastructureError: the file cannot be written, for example because the disk is full.
    """
    try:
        path.write_bytes(array_bytes(array))
    except OSError as error:
        raise InfrastructureError(f"{path} cannot be written ({array.nbytes} bytes): {error}") from error


def loaded_array(data: bytes | mmap.mmap, dtype: DType, shape: tuple[int, ...], offset: int = 0) -> Array:
    """Return what memory of the device holds as an array, which is mapped where elements have addresses.

    Args:
        data: holds it.
        dtype: of its elements.
        shape: its extents.
        offset: bytes before it.
    """
    count = math.prod(shape)
    if dtype is not DType.INT4 or count == 0:
        return np.frombuffer(data, numpy_dtype(dtype), count, offset if count else 0).reshape(shape)
    both = np.frombuffer(data, np.uint8, dtype.size_bytes(count), offset)
    halves = np.stack((both & 0xF, both >> 4), axis=-1).ravel()[:count]
    return ((halves ^ 8).astype(np.int8) - 8).astype(ml_dtypes.int4).reshape(shape)


def case_inputs(case: Case, seed: int, folder: Path | None = None) -> list[list[Array]]:
    """Return, for each input parameter of ``case``, its read-only arrays, one of each declared shape.

    An absent optional parameter has none.

    Every tensor has its own generator, seeded with the digest of the case, the seed and the parameter.

    Args:
        case: says how inputs are filled.
        seed: of what is drawn.
        folder: where data files lie.

    Raises:
        OperatorFormatError: a data file is missing or holds something else than the tensor.
    """
    variant, known = seed % case_variants(case, folder), encoded(case)
    return [
        [
            _filled(tensor, index, words_of("input", known, seed, tensor.name, index), folder, variant)
            for index in range(0 if tensor.optional_absent else len(tensor.shapes))
        ]
        for tensor in case.inputs
    ]


def case_variants(case: Case, folder: Path | None) -> int:
    """Return how many variants of the data files of a case there are; 1 when they have none."""
    tensors = [each for each in (*case.inputs, *case.outputs) if each.values.has_variants and each.shapes]
    counts = (
        next(count for count in itertools.count() if not _data_path(tensor, 0, folder, count).is_file())
        for tensor in tensors
    )
    return max(1, min(counts, default=1))


def _data_path(tensor: TensorSpec, index: int, folder: Path | None, variant: int) -> Path:
    return (folder or Path()) / tensor.values.file_of(index, variant)


def words_of(purpose: str, case: Case | Encoded, seed: int, name: str, index: int) -> np.random.Philox:
    """Return the generator of one tensor of a case, for one purpose."""
    entropy = int(digest_of(purpose, case, seed, name, index), 16)
    return np.random.Philox(np.random.SeedSequence(entropy))


def read_data_file(
    tensor: TensorSpec, index: int, folder: Path | None, *, variant: int = 0, exact: bool = True
) -> Array:
    """Return a data file of a tensor, in its declared shape: ``.npy``, or elements as they lie in memory.

    Args:
        tensor: says which file, and what it holds.
        index: position in a list of tensors.
        folder: that the file's name is relative to.
        variant: of the data.
        exact: whether an ``.npy`` has the element type of the tensor, or may have any that compares with it.

    Raises:
        OperatorFormatError: it is missing or holds something else than the tensor.
    """
    path, shape = _data_path(tensor, index, folder, variant), tensor.shapes[index]
    dtype = numpy_dtype(tensor.dtype)
    try:
        if path.suffix == ".npy":
            array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
            if array.dtype == np.uint16 and tensor.dtype is DType.BFLOAT16:
                array = array.view(dtype)
            if array.dtype == np.int8 and tensor.dtype is DType.INT4:
                if array.size and not -8 <= array.min() <= array.max() <= 7:
                    raise ValueError(f"it has {array.min()} to {array.max()}")
                array = array.astype(dtype)
        else:
            data = path.read_bytes()
            if len(data) != tensor.dtype.size_bytes(math.prod(shape)):
                raise ValueError(f"it has {len(data)} bytes")
            array = loaded_array(data, tensor.dtype, shape)
    except (OSError, ValueError) as error:
        raise OperatorFormatError(f"{path}: cannot be read as {tensor.name} {shape}: {error}") from error
    comparable = not exact and array.dtype.kind in "biufc"
    if array.shape != shape or not (array.dtype == dtype or comparable):
        raise OperatorFormatError(
            f"{path}: holds {array.dtype} {array.shape}, op.toml says {tensor.name} is {dtype} {shape}"
        )
    return array


def _filled(
    tensor: TensorSpec, index: int, words: np.random.Philox, folder: Path | None, variant: int
) -> Array:
    values, shape = tensor.values, tensor.shapes[index]
    if values.kind == "file":
        array = read_data_file(tensor, index, folder, variant=variant)
    elif values.kind == "fixed":
        array = _fixed(tensor, index)
    elif values.distinct:
        pool = _draw(tensor, values.distinct, words)
        array = pool[raw_words(words, math.prod(shape)) % np.uint64(values.distinct)]
    else:
        array = _draw(tensor, math.prod(shape), words)
    for injection in values.inject:
        array = _injected(array, injection, words)
    array = array.reshape(shape)
    array.flags.writeable = False
    return array


def _fixed(tensor: TensorSpec, index: int) -> Array:
    """Return the elements of one tensor of a list: its part of ``contents``, which holds those of all."""
    contents, dtype = np.array(tensor.values.contents), numpy_dtype(tensor.dtype)
    counts = [math.prod(shape) for shape in tensor.shapes]
    if contents.size == 1:
        return np.full(counts[index], contents.astype(dtype)[0])
    if dtype.kind == "c":
        contents = contents[::2] + 1j * contents[1::2]
    first = sum(counts[:index])
    elements: Array = contents[first : first + counts[index]].astype(dtype)
    return elements


def _injected(array: Array, injection: Injection, words: np.random.Philox) -> Array:
    """Return the elements with some replaced: at random places, one at least."""
    if array.size == 0:
        return array
    lots = raw_words(words, array.size)
    places = lots <= np.uint64(min(injection.share * 2.0**64, 2.0**64 - 2.0**11))
    places[lots.argmin()] = True
    changed: Array = array.reshape(-1).copy()
    changed[places] = injection.value
    return changed


def _draw(tensor: TensorSpec, count: int, words: np.random.Philox) -> Array:
    """Return ``count`` elements in one dimension."""
    dtype = numpy_dtype(tensor.dtype)
    values = tensor.values
    if values.kind == "permutation":
        array = raw_words(words, count).argsort(kind="stable").astype(dtype)
    elif values.kind == "integers" or not tensor.dtype.is_floating:
        array = _integers(values, count, words, dtype)
    elif dtype.kind == "c":
        array = _fine_floats(values, raw_words(words, count).view(np.uint32)).view(dtype)
    elif dtype.itemsize == 2:
        bits = raw_words(words, -(-count // 4)).view(np.uint16)[:count]
        array = _looked_up(_quantiles(values, tensor.dtype), bits)
    else:
        bits32 = raw_words(words, -(-count // 2)).view(np.uint32)[:count]
        array = _fine_floats(values, bits32).astype(dtype, copy=False)
    return array


def _looked_up(table: Array, bits: NDArray[np.uint16]) -> Array:
    """Return ``table[bits]`` of a table of 65,536 elements; in parts, whose indices stay in a cache."""
    array = np.empty(bits.size, table.dtype)
    for start in range(0, bits.size, _PART_ELEMS):
        part = slice(start, start + _PART_ELEMS)
        table.take(bits[part], out=array[part], mode="clip")  # none is beyond; this mode needs no copy
    return array


def raw_words(words: np.random.Philox, count: int) -> NDArray[np.uint64]:
    """Return ``count`` raw words as little-endian bytes in memory."""
    return words.random_raw(count).astype("<u8", copy=False)


def _integers(values: ValueRange, count: int, words: np.random.Philox, dtype: np.dtype[Any]) -> Array:
    low, high = math.ceil(values.low), math.floor(values.high)
    offsets = raw_words(words, count) % np.uint64(high - low + 1)
    whole: Array = offsets + np.uint64(low) if dtype.kind == "u" else offsets.astype(np.int64) + low
    return whole.astype(dtype)


@lru_cache(maxsize=32)
def _quantiles(values: ValueRange, dtype: DType) -> Array:
    if values.kind == "normal":
        table = values.low + values.high * _normal_quantiles()
    else:
        centres = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
        table = values.low + (values.high - values.low) * centres
    return table.astype(np.float32).astype(numpy_dtype(dtype))


@lru_cache(maxsize=1)
def _normal_quantiles() -> NDArray[np.float64]:
    standard = NormalDist()
    return np.array([standard.inv_cdf((k + 0.5) / _QUANTILES) for k in range(_QUANTILES)])


def _fine_floats(values: ValueRange, bits: NDArray[np.uint32]) -> NDArray[np.float32]:
    if values.kind == "normal":
        return _fine_normal(values, bits)
    unit: NDArray[np.float32] = (bits >> np.uint32(8)).astype(np.float32)  # 24 bits: exact in float32
    unit *= np.float32((values.high - values.low) * 2.0**-24)
    unit += np.float32(values.low)
    return unit


def _fine_normal(values: ValueRange, bits: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Interpolate between neighbouring quantiles: the high 16 bits choose, the low 16 bits weigh."""
    table = (values.low + values.high * _normal_quantiles()).astype(np.float32)
    steps = np.diff(table, append=table[-1:])
    upper = bits >> np.uint32(16)
    weights: NDArray[np.float32] = (bits & np.uint32(0xFFFF)).astype(np.float32)
    weights *= np.float32(2.0**-16)
    weights *= steps[upper]
    weights += table[upper]
    return weights
