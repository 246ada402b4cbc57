"""The header that is forced into a kernel build: what the real toolchain generates from the host side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Case, Diagnostic, Phase
from ascend_gym.core.status import Status
from npu_daemon.simulator.host_schema import (
    Column,
    DefinitionError,
    HostParameter,
    OperatorDefinition,
    Slot,
    TilingField,
    TilingStructure,
    match_column,
)

_KERNEL_TYPES = {
    "DT_FLOAT": "float",
    "DT_FLOAT16": "half",
    "DT_BF16": "bfloat16_t",
    "DT_INT8": "int8_t",
    "DT_UINT8": "uint8_t",
    "DT_INT16": "int16_t",
    "DT_UINT16": "uint16_t",
    "DT_INT32": "int32_t",
    "DT_UINT32": "uint32_t",
    "DT_INT64": "int64_t",
    "DT_UINT64": "uint64_t",
    "DT_BOOL": "bool",
    "DT_DOUBLE": "double",
    "DT_INT4": "int4b_t",
    "DT_COMPLEX64": "complex64",
}

# Declared in asim/api: cube_tiling.h, library_tiling.h, group_norm.h and drop_out.h.
_LIBRARY_STRUCTURES = frozenset(
    {
        *("SoftMaxTiling", "TCubeTiling", "LogSoftMaxTiling", "TopkTiling", "ConfusionTransposeTiling"),
        *("RmsNormTiling", "LayerNormTiling", "LayerNormSeparateTiling", "DeepNormTiling", "GroupNormTiling"),
    }
)

# How kernels read their tiling data. Each macro declares a copy; the pointer forms declare a pointer to one.
_ACCESS_MACROS = """\
#define GET_TILING_DATA_WITH_STRUCT(structure, tiling_data, tiling_arg) \\
    structure tiling_data;                                              \\
    AscendC::copy_tiling_data(&tiling_data, (const uint8_t *)(tiling_arg))
#define GET_TILING_DATA(tiling_data, tiling_arg) \\
    GET_TILING_DATA_WITH_STRUCT(asim_default_tiling, tiling_data, tiling_arg)
#define GET_TILING_DATA_MEMBER(structure, member, tiling_data, tiling_arg) \\
    decltype(structure::member) tiling_data;                               \\
    AscendC::copy_tiling_data(&tiling_data, (const uint8_t *)(tiling_arg) + offsetof(structure, member))
#define GET_TILING_DATA_PTR_WITH_STRUCT(structure, pointer, tiling_arg)          \\
    GET_TILING_DATA_WITH_STRUCT(structure, pointer##_copied_tiling, tiling_arg); \\
    structure *pointer = &pointer##_copied_tiling
#define COPY_TILING_WITH_STRUCT(structure, source, pointer) const structure *pointer = &(source)
#define COPY_TILING_WITH_ARRAY(type, count, source, pointer) const type(*pointer)[count] = &(source)
#define REGISTER_TILING_DEFAULT(structure) using asim_default_tiling = structure
#define REGISTER_TILING_FOR_TILINGKEY(condition, structure)
#define REGISTER_NONE_TILING
"""


def kernel_prelude(definition: OperatorDefinition, case: Case) -> str | Failure:
    """Return the text to include before a kernel source, after kernel_operator.h, for the types of ``case``.

    It defines DTYPE_X, ORIG_DTYPE_X and FORMAT_X for every parameter, the tiling structures as plain
    structures with the layout of the host side, and the macros that read them.
    """
    try:
        return column_prelude(definition, match_column(definition, case))
    except DefinitionError as error:
        diagnostic = Diagnostic(phase=Phase.BUILD_KERNEL, message=str(error))
        return Failure(Status.TILING_ERROR, (diagnostic,))


def column_prelude(definition: OperatorDefinition, column: Column) -> str:
    """Return that text for the types of a column.

    Raises:
        DefinitionError: kernels lack a type.
    """
    parameters = [
        *_parameter_macros(definition.inputs, column.inputs, taken=()),
        *_parameter_macros(
            definition.outputs, column.outputs, taken=[parameter.name for parameter in definition.inputs]
        ),
    ]
    parts = [
        f"// Generated from the host side of {definition.op_type}.",
        "#pragma once",
        "#include <cstddef>",
        *parameters,
        f"#define asim_input_slots {_slots(column.inputs)}",
        f"#define asim_output_slots {_slots(column.outputs)}",
        *_structures(definition),
        _ACCESS_MACROS,
    ]
    return "\n".join(parts)


def _parameter_macros(
    parameters: Sequence[HostParameter], slots: Sequence[Slot], taken: Sequence[str]
) -> Iterator[str]:
    """Yield the macros of each parameter; an output named like an input, its own result, gets ``_REF``."""
    for parameter, slot in zip(parameters, slots, strict=True):
        if slot.type not in _KERNEL_TYPES:
            raise DefinitionError(f"{parameter.name}: kernels have no element type for {slot.type}")
        name = parameter.name.upper() + ("_REF" if parameter.name in taken else "")
        yield f"#define DTYPE_{name} {_KERNEL_TYPES[slot.type]}"
        yield f"#define ORIG_DTYPE_{name} {slot.type}"
        yield f"#define FORMAT_{name} FORMAT_{slot.format}"


def _slots(slots: Sequence[Slot]) -> str:
    """Return types and layouts of parameters as ``asim/api/tiling_template.h`` takes them."""
    return ", ".join(f"{{ C_{slot.type}, C_FORMAT_{slot.format} }}" for slot in slots)


def _structures(definition: OperatorDefinition) -> Iterator[str]:
    declared: set[str] = set()
    for registered in definition.structures:
        for structure in registered.structure.nested_first():
            if structure.name not in declared:
                declared.add(structure.name)
                yield _declaration(structure)
    default = definition.structure_for(-1)
    if default is not None:
        yield f"using asim_default_tiling = {default.name};"


def _declaration(structure: TilingStructure) -> str:
    """Return the structure, but for those that kernels know already, and checks of its layout."""
    fields = [f"    {_field(field)};" for field in structure.fields]
    declared = [f"struct alignas(8) {structure.name} {{", *fields, "};"]
    checks = [
        f"static_assert(offsetof({structure.name}, {field.name}) == {field.offset});"
        for field in structure.fields
    ]
    size = [f"static_assert(sizeof({structure.name}) == {structure.bytes});"] if structure.fields else []
    return "\n".join([*(declared if structure.name not in _LIBRARY_STRUCTURES else ()), *size, *checks])


def _field(field: TilingField) -> str:
    extent = f"[{field.array_length}]" if field.array_length else ""
    return f"{field.type} {field.name}{extent}"
