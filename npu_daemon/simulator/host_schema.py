"""What the host side of an operator declares: its definition and its tiling structures.

The records are decoded from the answer of ``host_tiling describe``. That program runs host code that nobody
trusts, so the records check everything that is later written into C++ text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from ascend_gym.core.records import AttributeValue, Case, DType, Record, TensorSpec

Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=256)]
AttributeType = Literal[
    "bool", "int", "float", "string", "list_bool", "list_int", "list_float", "list_list_int"
]

MAX_BLOCKS = 65535
MAX_COLUMNS = 10_000
MAX_TILING_DATA_BYTES = 64 * 1024

HOST_TYPES: dict[DType, str] = {
    DType.FLOAT16: "DT_FLOAT16",
    DType.FLOAT32: "DT_FLOAT",
    DType.BFLOAT16: "DT_BF16",
    DType.INT4: "DT_INT4",
    DType.INT8: "DT_INT8",
    DType.UINT8: "DT_UINT8",
    DType.INT16: "DT_INT16",
    DType.UINT16: "DT_UINT16",
    DType.INT32: "DT_INT32",
    DType.UINT32: "DT_UINT32",
    DType.INT64: "DT_INT64",
    DType.UINT64: "DT_UINT64",
    DType.BOOL: "DT_BOOL",
    DType.FLOAT64: "DT_DOUBLE",
    DType.COMPLEX64: "DT_COMPLEX64",
}

_DEFAULT_LAYOUT = "ND"
# An optional attribute without a default is made from {}, which is the text itself for one that is a string
# (op_proto_generator.cpp of asc-devkit's opbuild).
_UNSAID: dict[str, AttributeValue] = {"bool": False, "int": 0, "float": 0.0, "string": "{}"}


class DefinitionError(ValueError):
    """A definition contradicts itself, or a case does not fit it; the message says where."""


class HostParameter(Record):
    """One input or output of an operator definition, as its OpDef states it.

    Attributes:
        name: name in the definition.
        kind: ``required``, ``optional`` (may be absent) or ``dynamic`` (a list of tensors).
        types: element types (``DT_FLOAT16``), one per column unless they combine.
        formats: layouts (``ND``), one per column unless they combine.
        types_combine: every type goes with every column of the other parameters.
        formats_combine: likewise for layouts.
        follows_type_of: input whose type this parameter has, or the empty string.
        follows_format_of: input whose layout this parameter has, or the empty string.
        value_dependent: the tiling function may read the values of this input.
        shape_depends_on_compute: the kernel says the shape of this output, in a tensor of its own.
        initial_values: what an output is filled with before the launch if the tiling function sets
            ``need_atomic``: nothing, one value, or one per column.
    """

    name: Identifier
    kind: Literal["required", "optional", "dynamic"]
    types: tuple[Identifier, ...]
    formats: tuple[Identifier, ...]
    types_combine: bool = False
    formats_combine: bool = False
    follows_type_of: str = ""
    follows_format_of: str = ""
    value_dependent: bool = False
    shape_depends_on_compute: bool = False
    initial_values: tuple[float, ...] = ()


class Attribute(Record):
    """One attribute of an operator definition; ``default`` is ``None`` when there is none."""

    name: str
    type: AttributeType
    required: bool
    default: Any = None


class TilingField(Record):
    """One field of a tiling structure.

    Attributes:
        name: field name.
        type: C++ type of an element, or the name of the nested structure.
        offset: bytes from the start of the structure.
        bytes: size of the field.
        array_length: number of elements, 0 for a plain field.
        structure: the nested structure, if the field is one.
    """

    name: Identifier
    type: Identifier
    offset: int = Field(ge=0)
    bytes: int = Field(ge=0)
    array_length: int = Field(default=0, ge=0)
    structure: TilingStructure | None = None


class TilingStructure(Record):
    """A structure made with BEGIN_TILING_DATA_DEF, with the layout that the kernel sees."""

    name: Identifier
    bytes: int = Field(ge=0)
    fields: tuple[TilingField, ...]

    def nested_first(self) -> tuple[TilingStructure, ...]:
        """Return the nested structures, innermost first, then this one."""
        inner = [field.structure.nested_first() for field in self.fields if field.structure is not None]
        return (*(structure for group in inner for structure in group), self)


class RegisteredStructure(Record):
    """A tiling structure registered for the operator, or only for one of its tiling keys."""

    tiling_key: int | None = None
    structure: TilingStructure


class Decision(Record):
    """The answer of ``host_tiling run``: what a tiling function decided."""

    block_dim: int = Field(ge=1, le=MAX_BLOCKS)
    tiling_key: int = Field(ge=0, lt=2**64)
    tiling_data: str = Field(pattern=r"^(?:[0-9a-f]{2})*$", max_length=2 * MAX_TILING_DATA_BYTES)
    workspace_bytes: tuple[Annotated[int, Field(ge=0, lt=2**64)], ...] = Field(max_length=16)
    schedule_mode: int = Field(ge=0)
    need_atomic: bool


@dataclass(frozen=True)
class Slot:
    """Element type and layout of one parameter in one column."""

    type: str
    format: str


@dataclass(frozen=True)
class Column:
    """One supported combination of types and layouts; one kernel is compiled for each."""

    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]


class OperatorDefinition(Record):
    """An operator as registered with OP_ADD, for one chip."""

    op_type: Identifier
    inputs: tuple[HostParameter, ...]
    outputs: tuple[HostParameter, ...]
    attributes: tuple[Attribute, ...]
    structures: tuple[RegisteredStructure, ...]

    def structure_for(self, tiling_key: int) -> TilingStructure | None:
        """Return the structure registered for ``tiling_key``, else the default one, else ``None``."""
        by_key = {registered.tiling_key: registered.structure for registered in self.structures}
        return by_key.get(tiling_key, by_key.get(None))

    def value_dependent_inputs(self) -> frozenset[str]:
        """Return the inputs whose values the tiling function may read."""
        return frozenset(each.name for each in self.inputs if each.value_dependent)

    def columns(self) -> tuple[Column, ...]:
        """Return the supported combinations in the order of the definition.

        Raises:
            DefinitionError: parameters list different numbers of types or layouts, follow an unknown one, or
                combine to too many.
        """
        parameters = (*self.inputs, *self.outputs)
        width = self._width(parameters)
        free_types = [parameter.types for parameter in parameters if parameter.types_combine]
        free_formats = [parameter.formats for parameter in parameters if parameter.formats_combine]
        count = width * prod(map(len, (*free_types, *free_formats)))
        if count > MAX_COLUMNS:
            raise DefinitionError(
                f"{self.op_type} combines its lists of types and formats to {count} kernels, at most "
                f"{MAX_COLUMNS} are expected: list the combinations in columns"
            )
        columns = []
        for index in range(width):
            for chosen in product(*free_types, *free_formats):
                columns.append(self._column(parameters, index, list(chosen)))
        return tuple(columns)

    def dtype_columns(self) -> tuple[Column, ...]:
        """Return one column for each combination of element types, that of plain ND layouts where it has one.

        Raises:
            DefinitionError: see ``columns``.
        """
        by_types: dict[tuple[str, ...], Column] = {}
        for column in sorted(self.columns(), key=_special_layouts):
            by_types.setdefault(tuple(slot.type for slot in (*column.inputs, *column.outputs)), column)
        return tuple(by_types.values())

    def _width(self, parameters: Sequence[HostParameter]) -> int:
        widths = {}
        for parameter in parameters:
            if not parameter.types_combine and not parameter.follows_type_of:
                widths[f"{parameter.name}.DataType"] = len(parameter.types)
            if parameter.formats and not parameter.formats_combine and not parameter.follows_format_of:
                widths[f"{parameter.name}.Format"] = len(parameter.formats)
        if len(set(widths.values())) > 1:
            listing = ", ".join(f"{name} {width}" for name, width in widths.items())
            raise DefinitionError(f"the lists of {self.op_type} must have equal lengths, got: {listing}")
        return next(iter(widths.values()), 1)

    def _column(self, parameters: Sequence[HostParameter], index: int, chosen: list[str]) -> Column:
        types: dict[str, str] = {}
        formats: dict[str, str] = {}
        slots = []
        type_choices = iter(chosen)
        format_choices = iter(chosen[sum(parameter.types_combine for parameter in parameters) :])
        for parameter in parameters:
            slot = Slot(
                self._pick(parameter, parameter.follows_type_of, types)
                or (next(type_choices) if parameter.types_combine else parameter.types[index]),
                self._pick(parameter, parameter.follows_format_of, formats)
                or (next(format_choices) if parameter.formats_combine else "")
                or (parameter.formats[index] if parameter.formats else _DEFAULT_LAYOUT),
            )
            types.setdefault(parameter.name, slot.type)
            formats.setdefault(parameter.name, slot.format)
            slots.append(slot)
        return Column(tuple(slots[: len(self.inputs)]), tuple(slots[len(self.inputs) :]))

    def _pick(self, parameter: HostParameter, followed: str, known: dict[str, str]) -> str:
        if not followed:
            return ""
        if followed not in known:
            raise DefinitionError(
                f"{self.op_type}: {parameter.name} follows {followed!r}, which is not an earlier parameter"
            )
        return known[followed]


def match_tensors(
    parameters: Sequence[HostParameter], tensors: Sequence[TensorSpec], side: str
) -> list[TensorSpec | None]:
    """Return for each parameter of the definition its tensor in the case, ``None`` when it is absent.

    Raises:
        DefinitionError: the case has a tensor that the definition lacks, or lacks one that is required.
    """
    by_name = {tensor.name: tensor for tensor in tensors if not tensor.optional_absent}
    known = [parameter.name for parameter in parameters]
    unknown = [tensor.name for tensor in tensors if tensor.name not in known]
    if unknown:
        raise DefinitionError(f"the case has {side} {unknown}, the definition has {known}")
    missing = [p.name for p in parameters if p.kind == "required" and p.name not in by_name]
    if missing:
        raise DefinitionError(f"the definition requires {side} {missing}, the case has {sorted(by_name)}")
    return [by_name.get(name) for name in known]


def match_outputs(definition: OperatorDefinition, case: Case) -> list[TensorSpec | None]:
    """Return for each output of the definition its tensor in the case.

    An output of the case may also be an input of the definition that the kernel updates.

    Raises:
        DefinitionError: see ``match_tensors``.
    """
    outputs = {parameter.name for parameter in definition.outputs}
    updated = {parameter.name for parameter in definition.inputs} - outputs
    tensors = [tensor for tensor in case.outputs if tensor.name not in updated]
    return match_tensors(definition.outputs, tensors, "outputs")


def match_column(definition: OperatorDefinition, case: Case) -> Column:
    """Return the column whose element types are those of ``case``; plain ND layouts are preferred.

    Raises:
        DefinitionError: no column matches; the message lists them.
    """
    columns = definition.columns()
    wanted = _types(match_tensors(definition.inputs, case.inputs, "inputs"))
    wanted += _types(match_outputs(definition, case))
    matching = [
        column
        for column in columns
        if all(
            want is None or want == slot.type
            for want, slot in zip(wanted, (*column.inputs, *column.outputs), strict=True)
        )
    ]
    if not matching:
        names = [parameter.name for parameter in (*definition.inputs, *definition.outputs)]
        asked = ", ".join(f"{name} {want}" for name, want in zip(names, wanted, strict=True) if want)
        offers = "; ".join(
            ", ".join(slot.type for slot in (*column.inputs, *column.outputs)) for column in columns
        )
        raise DefinitionError(
            f"{definition.op_type} has no kernel for {asked}; its columns ({', '.join(names)}) are: {offers}"
        )
    return min(matching, key=_special_layouts)


def match_attributes(
    definition: OperatorDefinition, case: Case
) -> list[tuple[Attribute, AttributeValue | tuple[tuple[int, ...], ...]]]:
    """Return each attribute of the definition with its value in ``case``, or its default.

    An optional one without a default is empty.

    Raises:
        DefinitionError: the case sets an unknown attribute, or lacks one that has no default.
    """
    known = [attribute.name for attribute in definition.attributes]
    unknown = sorted(set(case.attributes) - set(known))
    if unknown:
        raise DefinitionError(f"the case sets attributes {unknown}, {definition.op_type} has {known}")
    values = []
    for attribute in definition.attributes:
        value = case.attributes.get(attribute.name, attribute.default)
        if value is None and not attribute.required:
            value = () if attribute.type.startswith("list_") else _UNSAID[attribute.type]
        if value is None:
            raise DefinitionError(f"attribute {attribute.name!r} has no default: the case must set it")
        values.append((attribute, value))
    return values


def _types(tensors: Sequence[TensorSpec | None]) -> list[str | None]:
    return [None if tensor is None else HOST_TYPES[tensor.dtype] for tensor in tensors]


def _special_layouts(column: Column) -> int:
    return sum(slot.format != _DEFAULT_LAYOUT for slot in (*column.inputs, *column.outputs))
