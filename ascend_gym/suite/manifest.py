"""``op.toml``: cases, tolerances and labels of an operator folder, read strictly; checks of their values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import AttributeValue, Case, DType, TensorSpec, Tolerance, ValueRange
from ascend_gym.core.toml_file import explained, read_toml
from ascend_gym.suite.inputs import numpy_dtype

DATA_SUFFIXES = (".npy", ".bin")

_UNSIGNED = (DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64, DType.BOOL)
_LIMITS = {DType.BOOL: (0, 1), DType.INT4: (-8, 7)}  # of types that numpy does not know as integers
_LARGEST = {DType.FLOAT16: 65504.0}  # of floating types with another range than float32
_DRAWN = ("uniform", "normal", "integers")

MANIFEST_NAME = "op.toml"
FORMAT = 1
_Shape = tuple[Annotated[int, Field(ge=0)], ...]


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
    if dtype in _UNSIGNED and low < 0:
        raise ValueError(f"values: {dtype.value} cannot hold numbers down to {low}")
    if whole and not dtype.is_floating:
        _check_number(math.ceil(low), dtype, "low")
        _check_number(math.floor(high), dtype, "high")


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


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OperatorSection(_Section):
    """The ``[operator]`` table.

    Attributes:
        type: CamelCase type as registered by ``OP_ADD``.
        level: difficulty level, 1 to 3.
        category: what kind of operator it is.
        description: one line for people and prompts.
        auto_sync: whether the operator is compiled with automatic synchronisation.
        reads_all_inputs: false for operators that pick from their inputs, such as gather.
        tiling: main host file relative to the folder; found by rule when left out.
        kernel: main kernel file relative to the folder; found by rule when left out.
        sources: where the sources lie when not beside the manifest: ``cann-ops:CATEGORY/OPERATOR``, ``ops-nn:...``.
        reference: ``baseline`` when what the operator's own sources compute is what is expected.
        sources_digest: digest of those sources or how it begins; others are refused.
    """

    type: str
    level: int = Field(ge=1, le=3)
    category: str
    description: str
    auto_sync: bool = True
    reads_all_inputs: bool = True
    tiling: str | None = None
    kernel: str | None = None
    sources: str | None = Field(default=None, pattern=r"^[a-z0-9-]+:[a-z0-9_]+(/[a-z0-9_]+)+$")
    reference: Literal["baseline"] | None = None
    sources_digest: str | None = Field(default=None, pattern=r"^[0-9a-f]{12,64}$")


class _TensorEntry(_Section):
    name: str
    dtype: DType
    shape: _Shape | None = None
    shapes: tuple[_Shape, ...] | None = None

    @model_validator(mode="after")
    def _one_of_shape_and_shapes(self) -> _TensorEntry:
        if (self.shape is None) == (self.shapes is None):
            raise ValueError("give exactly one of 'shape' (plain tensor) and 'shapes' (list of tensors)")
        return self

    def spec(self, **fields: Any) -> TensorSpec:
        if self.shapes is not None:
            return TensorSpec(name=self.name, dtype=self.dtype, shapes=self.shapes, dynamic=True, **fields)
        return TensorSpec(name=self.name, dtype=self.dtype, shapes=(self.shape or (),), **fields)


class _InputEntry(_TensorEntry):
    values: ValueRange = ValueRange()
    optional_absent: bool = False

    @model_validator(mode="after")
    def _values_can_be_drawn(self) -> _InputEntry:
        if "values" in self.model_fields_set:
            check_values(self.values, self.dtype, self.shapes or (self.shape or (),))
        return self

    def spec(self, **fields: Any) -> TensorSpec:
        """Return the record; whole numbers that may not be negative are drawn from 0 and 1 unless said."""
        values = self.values
        if self.dtype in _UNSIGNED and "values" not in self.model_fields_set:
            values = ValueRange(kind="integers", low=0, high=1)
        return super().spec(values=values, optional_absent=self.optional_absent, **fields)


class _OutputEntry(_TensorEntry):
    open: bool = False
    values: ValueRange | None = None

    @model_validator(mode="after")
    def _values_are_a_file(self) -> _OutputEntry:
        if self.values is not None:
            if self.values.kind != "file":
                raise ValueError("values: those of an output are a data file, { kind = 'file', file = ... }")
            check_values(self.values, self.dtype, self.shapes or (self.shape or (),))
        return self

    def spec(self, **fields: Any) -> TensorSpec:
        if self.values is not None:
            fields["values"] = self.values
        return super().spec(open=self.open, **fields)


class _CaseEntry(_Section):
    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$", max_length=100)
    attributes: dict[str, AttributeValue] = {}
    input: tuple[_InputEntry, ...] = ()
    output: tuple[_OutputEntry, ...] = Field(min_length=1)


class Manifest(_Section):
    """The content of an ``op.toml``; ``format`` is the version of what its keys mean."""

    format: int = FORMAT
    operator: OperatorSection
    tolerance: dict[DType, Tolerance] = {}
    case: tuple[_CaseEntry, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _format_is_known(self) -> Manifest:
        if self.format != FORMAT:
            raise ValueError(f"format: this version of ascend-gym reads format {FORMAT}, got {self.format}")
        return self

    @model_validator(mode="after")
    def _names_differ(self) -> Manifest:
        for what, names in (
            ("case", [entry.id for entry in self.case]),
            *((f"input of case {entry.id!r}", [each.name for each in entry.input]) for entry in self.case),
            *((f"output of case {entry.id!r}", [each.name for each in entry.output]) for entry in self.case),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{what}: {', '.join(twice)} occurs more than once")
        return self

    @model_validator(mode="after")
    def _floating_outputs_have_a_tolerance(self) -> Manifest:
        for entry in self.case:
            for output in entry.output:
                if output.dtype.is_floating and not output.open and output.dtype not in self.tolerance:
                    raise ValueError(
                        f"case {entry.id!r} has a {output.dtype.value} output {output.name!r}: "
                        f"add a [tolerance.{output.dtype.value}] table with atol and rtol"
                    )
        return self

    @property
    def has_all_outputs(self) -> bool:
        """Whether every output is open or has a data file, so that no reference is needed."""
        return all(output.open or output.values for entry in self.case for output in entry.output)

    def cases(self) -> tuple[Case, ...]:
        """Return the cases as core records."""
        return tuple(
            Case(
                case_id=entry.id,
                inputs=tuple(tensor.spec() for tensor in entry.input),
                outputs=tuple(tensor.spec() for tensor in entry.output),
                attributes=entry.attributes,
                tolerance=self.tolerance,
            )
            for entry in self.case
        )


def read_manifest(path: Path) -> Manifest:
    """Read and check an ``op.toml``.

    Raises:
        OperatorFormatError: the file is unreadable, is not TOML, or has a missing, wrong or unknown key;
            the message names the file and the key.
    """
    try:
        content = read_toml(path)
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise OperatorFormatError(f"{path}: cannot be read as TOML: {error}") from error
    try:
        manifest = Manifest.model_validate(content)
        manifest.cases()
    except ValidationError as error:
        raise OperatorFormatError(explained(path, text, error, Manifest)) from error
    return manifest
