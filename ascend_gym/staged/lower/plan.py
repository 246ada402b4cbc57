"""Pass 1, plan: tiling data, tiling function, shape inference and definition of the operator."""

from __future__ import annotations

from ascend_gym.staged.lower.context import Context, helpers_for, name_of, scalar_type, share_part
from ascend_gym.staged.scalars import cpp, is_float, knob_name
from ascend_gym.suite.skeleton import Interface, definition_text, inference_text

_FIELDS = {"i32": "int64_t", "f32": "float"}


def host_source(context: Context) -> str:
    """Return the host source of a program."""
    operator = context.interface.op_type
    tiling = _tiling_function(context)
    knobs = "".join(
        f"constexpr int64_t {knob_name(each.name)} = {each.default};\n"
        for each in context.program.knobs.values()
    )
    fields = "".join(
        f"TILING_DATA_FIELD_DEF({_FIELDS[each.dtype]}, {name_of(each.name)});\n"
        for each in context.program.scalars
    )
    fields += "".join(f"TILING_DATA_FIELD_DEF(int64_t, {name});\n" for name in context.parts.values())
    fields = fields or "TILING_DATA_FIELD_DEF(int64_t, reserved);\n"
    parts = [
        f"// Host side of {operator}: tiling, shape inference and operator definition.\n"
        f"{'#include <cmath>' + chr(10) * 2 if 'std::' in tiling else ''}"
        '#include "register/op_def_registry.h"\n'
        '#include "register/tilingdata_base.h"\n'
        '#include "tiling/platform/platform_ascendc.h"\n',
        f"namespace optiling {{\nBEGIN_TILING_DATA_DEF({operator}TilingData)\n{fields}END_TILING_DATA_DEF;\n",
        f"REGISTER_TILING_DATA_CLASS({operator}, {operator}TilingData)\n",
        *([knobs] if knobs else []),
        *([helpers] if (helpers := helpers_for(tiling, "static inline").rstrip("\n") + "\n") != "\n" else []),
        f"{tiling}}} // namespace optiling\n",
        inference_text(context.interface),
        definition_text(context.interface),
    ]
    return "\n".join(parts)


def _tiling_function(context: Context) -> str:
    program, interface = context.program, context.interface
    types = {each.name: each.dtype == "f32" for each in program.attributes}
    lines: list[str] = []
    for assignment in program.host:
        floating = is_float(assignment.value, types, {})
        fresh = assignment.name not in types
        types[assignment.name] = types.get(assignment.name, False) or floating
        value = cpp(assignment.value, types, {}, _names(types))
        declared = f"{scalar_type(is_float=types[assignment.name])} " if fresh else ""
        lines.append(f"{declared}{name_of(assignment.name)} = {value};")
    cores = cpp(program.cores, types, {}, _names(types))
    workspace = "0" if program.workspace is None else cpp(program.workspace, types, {}, _names(types))
    text = "\n".join([*lines, cores, workspace])
    attributes = [
        f"const {scalar_type(is_float=each.dtype == 'f32')} {name_of(each.name)} = "
        f"{_attribute(interface, each.name)};"
        for each in program.attributes
    ]
    operator = interface.op_type
    filled = [f"tiling.set_{name_of(each.name)}({name_of(each.name)});" for each in program.scalars]
    for share in context.shares:
        part = share_part(context, share, lambda node: cpp(node, types, {}, _names(types)), "blockDim")
        filled.append(f"tiling.set_{context.parts[id(share)]}({part});")
    body = [
        "auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());",
        "const int64_t vecCores = platform.GetCoreNumAiv();",
        *_shape_lines(interface, text),
        *(_UB_LINES if "ubBytes" in text else []),
        *attributes,
        *lines,
        f"const int64_t blockDim = {cores};",
        "if (blockDim < 1 || blockDim > vecCores) {",
        "    return ge::GRAPH_FAILED;",
        "}",
        "",
        f"{operator}TilingData tiling;",
        *(filled or ["tiling.set_reserved(0);"]),
        "context->SetBlockDim(static_cast<uint32_t>(blockDim));",
        "auto* data = context->GetRawTilingData();",
        "tiling.SaveToBuffer(data->GetData(), data->GetCapacity());",
        "data->SetDataSize(tiling.GetDataSize());",
        "size_t* workspaceSizes = context->GetWorkspaceSizes(1);",
        _workspace_line(workspace),
        "return ge::GRAPH_SUCCESS;",
    ]
    inner = "\n".join(f"    {line}" if line else "" for line in body)
    return f"static ge::graphStatus TilingFunc(gert::TilingContext* context)\n{{\n{inner}\n}}\n"


_UB_LINES = [
    "uint64_t ubBytes = 0;",
    "platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubBytes);",
]


def _workspace_line(elements: str) -> str:
    if elements == "0":
        return "workspaceSizes[0] = 0;"
    return f"workspaceSizes[0] = platform.GetLibApiWorkSpaceSize() + ({elements}) * sizeof(float);"


def _names(types: dict[str, bool]) -> dict[str, str]:
    renamed = {name: name_of(name) for name in types}
    return {**renamed, "vec_cores": "(vecCores)", "ub_bytes": "static_cast<int64_t>(ubBytes)"}


def _shape_lines(interface: Interface, text: str) -> list[str]:
    """Return the shapes that the function looks at."""
    lines = []
    for kind, parameters in (("Input", interface.inputs), ("Output", interface.outputs)):
        for number, each in enumerate(parameters):
            if f"{each.name}Shape." in text:
                source = f"context->Get{kind}Shape({number})->GetStorageShape()"
                lines.append(f"const gert::Shape& {each.name}Shape = {source};")
    return lines


def _attribute(interface: Interface, name: str) -> str:
    number = [each for each, _ in interface.attributes].index(name)
    value = dict(interface.attributes)[name]
    kind = "bool" if isinstance(value, bool) else "float" if isinstance(value, float) else "int64_t"
    return f"*context->GetAttrs()->GetAttrPointer<{kind}>({number})"
