"""``op.toml``: the cases, tolerances and labels of an operator folder, read strictly."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import AttributeValue, Case, DType, TensorSpec, Tolerance, ValueRange
from ascend_gym.core.toml_file import read_toml, unknown_key

MANIFEST_NAME = "op.toml"

_UNSIGNED = (DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64, DType.BOOL)


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
    """

    type: str
    level: int = Field(ge=1, le=3)
    category: str
    description: str
    auto_sync: bool = True
    reads_all_inputs: bool = True
    tiling: str | None = None
    kernel: str | None = None


class _TensorEntry(_Section):
    name: str
    dtype: DType
    shape: tuple[int, ...] | None = None
    shapes: tuple[tuple[int, ...], ...] | None = None

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
        kind, low, high = self.values.kind, self.values.low, self.values.high
        whole = kind == "integers" or not self.dtype.is_floating
        if kind in ("uniform", "integers") and (math.ceil(low) > math.floor(high) if whole else low > high):
            raise ValueError(f"values: no {'whole ' if whole else ''}number lies in [{low}, {high}]")
        if kind == "normal" and not (self.dtype.is_floating and high > 0):
            raise ValueError("values: 'normal' needs a floating dtype and a positive deviation 'high'")
        if self.dtype in _UNSIGNED and low < 0 and kind != "permutation":
            raise ValueError(f"values: {self.dtype.value} cannot hold numbers down to {low}")
        return self

    def spec(self, **fields: Any) -> TensorSpec:
        return super().spec(values=self.values, optional_absent=self.optional_absent, **fields)


class _OutputEntry(_TensorEntry):
    open: bool = False

    def spec(self, **fields: Any) -> TensorSpec:
        return super().spec(open=self.open, **fields)


class _CaseEntry(_Section):
    id: str
    attributes: dict[str, AttributeValue] = {}
    input: tuple[_InputEntry, ...] = Field(min_length=1)
    output: tuple[_OutputEntry, ...] = Field(min_length=1)


class Manifest(_Section):
    """The content of an ``op.toml``."""

    operator: OperatorSection
    tolerance: dict[DType, Tolerance] = {}
    case: tuple[_CaseEntry, ...] = Field(min_length=1)

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
    except (OSError, ValueError) as error:
        raise OperatorFormatError(f"{path}: cannot be read as TOML: {error}") from error
    try:
        manifest = Manifest.model_validate(content)
        manifest.cases()
    except ValidationError as error:
        raise OperatorFormatError(f"{path}: {explain(error)}") from error
    return manifest


def explain(error: ValidationError) -> str:
    """Return a pydantic error as ``key: what is wrong`` clauses, without errors that follow from others."""
    details = error.errors()
    clauses = []
    for detail in details:
        where = detail["loc"]
        follows = any(other["loc"][: len(where)] == where and other is not detail for other in details)
        if detail["type"] == "too_short" and follows:
            continue
        unknown = detail["type"] == "extra_forbidden"
        reason = unknown_key(Manifest, where) if unknown else detail["msg"]
        clauses.append(f"{'.'.join(str(part) for part in where) or 'document'}: {reason}")
    return "; ".join(clauses)
