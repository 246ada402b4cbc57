"""Tensors of a session's program: random arguments that it reads, and the outputs that it wrote.

The program is not trusted: what it says of its outputs is checked before a byte of them is read.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import Case, DType, TensorSpec, ValueRange
from ascend_gym.suite.inputs import case_inputs, loaded_array, write_array

Values = np.ndarray[Any, Any]
Outputs = tuple[tuple[DType, Values], ...]

_UNIT = ValueRange(low=0, high=1)
# Types that session_host.h has, with what is drawn of them.
_DRAWN = {
    DType.BOOL: ValueRange(kind="integers", low=0, high=1),
    DType.UINT8: ValueRange(kind="integers", low=0, high=99),
    DType.INT8: ValueRange(kind="integers", low=0, high=99),
    DType.INT16: ValueRange(kind="integers", low=0, high=999),
    DType.INT32: ValueRange(kind="integers", low=0, high=999),
    DType.INT64: ValueRange(kind="integers", low=0, high=999),
    DType.FLOAT16: _UNIT,
    DType.BFLOAT16: _UNIT,
    DType.FLOAT32: _UNIT,
    DType.FLOAT64: _UNIT,
}
_WORDS = {"True": "1", "False": "0", "None": "none"}
# Bounds of mean relative errors by which the data set judges; ten times that for the largest.
_BOUNDS = {
    DType.FLOAT16: 2.0**-10,
    DType.BFLOAT16: 2.0**-7,
    DType.FLOAT32: 2.0**-13,
    DType.FLOAT64: 2.0**-13,
}
_NEGLIGIBLE = 1e-3  # of the bound: absolute differences below count as none
_ONE_APART = (DType.INT8, DType.INT16)  # results of a quantisation may differ by one
_OUTPUT = re.compile(r"^output y(\d{1,3})\.bin (\w{1,20}) ((?:\d{1,15} )*)$", re.M)


def element_type(name: str) -> DType:
    """Return an element type by its name.

    Raises:
        MisuseError: session_host.h has no such type.
    """
    found = next((dtype for dtype in _DRAWN if dtype.value == name), None)
    if found is None:
        raise MisuseError(f"tensors of {name} are unknown: expected one of {[one.value for one in _DRAWN]}")
    return found


def most_elements(words: tuple[str, ...]) -> float:
    """Return the size of the largest tensor of a case; infinitely many where an argument is not known."""
    shapes = [word.partition(":")[2] for word in words if ":" in word]
    return math.inf if "?" in words or not shapes else max(math.prod(_extents(shape)) for shape in shapes)


def argument(word: str, place: int, folder: Path) -> str:
    """Return an argument as the program expects it, and write random values where it is a tensor.

    Args:
        word: as ``Outcome.inputs`` has it.
        place: among the arguments.
        folder: of the file.

    Raises:
        MisuseError: the element type is unknown.
    """
    name, separator, shape = word.partition(":")
    if not separator:
        return _WORDS.get(word, word)
    dtype = element_type(name)
    tensor = TensorSpec(name=f"in{place}", dtype=dtype, shapes=(_extents(shape),), values=_DRAWN[dtype])
    ((drawn,),) = case_inputs(Case(case_id="session", inputs=(tensor,), outputs=()), seed=0)
    file = f"{tensor.name}.bin"
    write_array(folder / file, drawn)
    return f"{word}:{file}"


def outputs_of(stdout: str, folder: Path) -> Outputs:
    """Return what a program wrote to y0.bin, y1.bin and so on in its folder, as it announced them.

    Raises:
        MisuseError: an output has another name, an unknown type, or another size than was announced.
    """
    announced = _OUTPUT.findall(stdout)
    if [int(number) for number, _, _ in announced] != list(range(len(announced))):
        raise MisuseError(f"expected outputs y0.bin, y1.bin ... once each, not {announced}")
    return tuple(
        _output(folder / f"y{number}.bin", element_type(name), tuple(map(int, shape.split())))
        for number, name, shape in announced
    )


def _output(file: Path, dtype: DType, shape: tuple[int, ...]) -> tuple[DType, Values]:
    expected = dtype.size_bytes(math.prod(shape))
    if file.is_symlink() or not file.is_file() or file.stat().st_size != expected:
        raise MisuseError(f"{file.name}: expected a file of {expected} bytes, {dtype.value} {shape}")
    bytes_of = DType.UINT8 if dtype is DType.BOOL else dtype  # nothing says that each is 0 or 1
    return dtype, loaded_array(file.read_bytes(), bytes_of, shape)


def outputs_agree(outputs: Outputs, expected: Outputs) -> bool:
    """Whether outputs agree within the bounds of the data set."""
    if [(dtype, values.shape) for dtype, values in outputs] != [(dtype, of.shape) for dtype, of in expected]:
        return False
    return all(_agree(dtype, one, other) for (dtype, one), (_, other) in zip(outputs, expected, strict=True))


def _agree(dtype: DType, output: Values, expected: Values) -> bool:
    if output.size == 0:
        return True
    if not dtype.is_floating:
        return bool(np.abs(output.astype(np.int64) - expected).max() <= (dtype in _ONE_APART))
    bound = _BOUNDS[dtype]
    wide, exact = output.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        relative = np.abs(wide - exact) / (np.abs(exact) + 1e-7)
        relative[(wide == exact) | (np.abs(wide - exact) < bound * _NEGLIGIBLE)] = 0
    relative[np.isnan(wide) & np.isnan(exact)] = 0
    return bool(relative.mean() < bound and relative.max() < 10 * bound)


def _extents(shape: str) -> tuple[int, ...]:
    return tuple(int(extent) for extent in shape.split("x") if extent)
