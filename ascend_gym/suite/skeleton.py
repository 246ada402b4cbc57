"""What a specification fixes for every implementation, and the sources that hold that and nothing else.

The skeleton of an operator without sources is where its implementations begin: definition, shape inference
and kernel entry are there, with the specification as a comment; the tiling function launches nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ascend_gym.core.records import (
    AttributeValue,
    Candidate,
    Case,
    DType,
    OpSpec,
    SourceFile,
    Sources,
    TensorSpec,
)

_GE_TYPES = {
    DType.FLOAT32: "ge::DT_FLOAT",
    DType.FLOAT16: "ge::DT_FLOAT16",
    DType.INT32: "ge::DT_INT32",
    DType.UINT8: "ge::DT_UINT8",
    DType.BOOL: "ge::DT_BOOL",
}


@dataclass(frozen=True)
class Parameter:
    """A tensor of the operator: its name, and its type in each combination of types."""

    name: str
    dtypes: tuple[DType, ...]


@dataclass(frozen=True)
class Interface:
    """What tiling function, definition and kernel entry have to agree on.

    Attributes:
        op_type: CamelCase type.
        name: snake_case name: of the files and the kernel's entry.
        inputs: inputs in order.
        outputs: outputs in order.
        attributes: attributes in order of their names, with a value of the first case.
        shapes: for each output, the number of the input that has its shape in every case; -1 for none.
    """

    op_type: str
    name: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    attributes: tuple[tuple[str, AttributeValue], ...]
    shapes: tuple[int, ...]


def interface_of(spec: OpSpec) -> Interface:
    """Return the interface of an operator."""
    return interface_from(spec.op_type, spec.name, spec.cases)


def interface_from(op_type: str, name: str, cases: Sequence[Case]) -> Interface:
    """Return the interface of an operator by its cases."""
    first = cases[0]
    combinations = list(dict.fromkeys(_types(case) for case in cases))
    count = len(first.inputs)
    columns = list(zip(*combinations, strict=True))
    named = (*first.inputs, *first.outputs)
    parameters = [Parameter(tensor.name, tuple(types)) for tensor, types in zip(named, columns, strict=True)]
    return Interface(
        op_type=op_type,
        name=name,
        inputs=tuple(parameters[:count]),
        outputs=tuple(parameters[count:]),
        attributes=tuple(sorted(first.attributes.items())),
        shapes=tuple(_twin(cases, number) for number in range(len(first.outputs))),
    )


def _types(case: Case) -> tuple[DType, ...]:
    return tuple(tensor.dtype for tensor in (*case.inputs, *case.outputs))


def _twin(cases: Sequence[Case], output: int) -> int:
    """Return the input whose shape an output has in every case, or -1."""
    for number in range(len(cases[0].inputs)):
        if all(_shape(case.inputs[number]) == _shape(case.outputs[output]) for case in cases):
            return number
    return -1


def _shape(tensor: TensorSpec) -> tuple[int, ...]:
    return tensor.shapes[0]


def skeleton(interface: Interface, specification: str) -> Candidate:
    """Return sources that have the interface of an operator and compute nothing.

    Args:
        interface: tensors, attributes and names.
        specification: what is to be computed, put into the kernel source as a comment.
    """
    host, kernel = f"op_host/{interface.name}.cpp", f"op_kernel/{interface.name}.cpp"
    return Candidate(
        host=Sources(files=(SourceFile(path=host, text=_host_text(interface)),), main=host),
        kernel=Sources(
            files=(SourceFile(path=kernel, text=_kernel_text(interface, specification)),), main=kernel
        ),
    )


def _host_text(interface: Interface) -> str:
    operator = interface.op_type
    return (
        f"// Host side of {operator}. The interface is fixed: tiling data and TilingFunc are to be written.\n"
        '#include "register/op_def_registry.h"\n#include "register/tilingdata_base.h"\n'
        '#include "tiling/platform/platform_ascendc.h"\n\n'
        f"namespace optiling {{\nBEGIN_TILING_DATA_DEF({operator}TilingData)\n"
        "TILING_DATA_FIELD_DEF(int64_t, totalLength); // replace by what the kernel needs to know\n"
        f"END_TILING_DATA_DEF;\n\nREGISTER_TILING_DATA_CLASS({operator}, {operator}TilingData)\n\n"
        "static ge::graphStatus TilingFunc(gert::TilingContext* context)\n{\n"
        "    (void)context; // not written yet: nothing can be launched\n"
        "    return ge::GRAPH_FAILED;\n}\n} // namespace optiling\n\n"
        f"{inference_text(interface)}\n{definition_text(interface)}"
    )


def _kernel_text(interface: Interface, specification: str) -> str:
    parameters = [f"GM_ADDR {each.name}" for each in (*interface.inputs, *interface.outputs)]
    signature = ", ".join([*parameters, "GM_ADDR workspace", "GM_ADDR tiling"])
    comment = "".join(f"// {line}".rstrip() + "\n" for line in specification.rstrip().splitlines())
    return (
        f"// Device side of {interface.op_type}. The entry is fixed, its body is to be written.\n//\n"
        f"{comment}"
        '#include "kernel_operator.h"\n\n'
        f'extern "C" __global__ __aicore__ void {interface.name}({signature})\n{{\n'
        "    GET_TILING_DATA(tilingData, tiling);\n    (void)tilingData;\n}\n"
    )


def inference_text(interface: Interface) -> str:
    """Return shape and type inference in C++."""
    shapes, types = [], []
    for number, twin in enumerate(interface.shapes):
        if twin >= 0:
            shapes.append(f"*context->GetOutputShape({number}) = *context->GetInputShape({twin});")
        else:
            shapes.append(
                f"context->GetOutputShape({number})->SetDimNum(0); // known to the caller, who gives it"
            )
        output = interface.outputs[number]
        same = next((k for k, each in enumerate(interface.inputs) if each.dtypes == output.dtypes), -1)
        source = f"context->GetInputDataType({same})" if same >= 0 else _GE_TYPES[output.dtypes[0]]
        types.append(f"context->SetOutputDataType({number}, {source});")
    return (
        "namespace ge {\n"
        f"static ge::graphStatus InferShape(gert::InferShapeContext* context)\n{{\n{_indented(shapes)}\n"
        "    return GRAPH_SUCCESS;\n}\n\n"
        f"static ge::graphStatus InferDataType(gert::InferDataTypeContext* context)\n{{\n{_indented(types)}\n"
        "    return GRAPH_SUCCESS;\n}\n} // namespace ge\n"
    )


def _indented(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def definition_text(interface: Interface) -> str:
    """Return the definition of the operator in C++."""
    parts = [_parameter("Input", each) for each in interface.inputs]
    parts += [_parameter("Output", each) for each in interface.outputs]
    parts += [attribute_definition(name, value) for name, value in interface.attributes]
    operator = interface.op_type
    return (
        f"namespace ops {{\nclass {operator} : public OpDef {{\npublic:\n"
        f"    explicit {operator}(const char* name) : OpDef(name)\n    {{\n{''.join(parts)}\n"
        "        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);\n"
        '        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");\n'
        f"    }}\n}};\n\nOP_ADD({operator});\n}} // namespace ops\n"
    )


def _parameter(kind: str, parameter: Parameter) -> str:
    types = ", ".join(_GE_TYPES[each] for each in parameter.dtypes)
    formats = ", ".join("ge::FORMAT_ND" for _ in parameter.dtypes)
    return (
        f'        this->{kind}("{parameter.name}")\n            .ParamType(REQUIRED)\n'
        f"            .DataType({{{types}}})\n            .Format({{{formats}}})\n"
        f"            .UnknownShapeFormat({{{formats}}});\n"
    )


def attribute_definition(name: str, value: AttributeValue) -> str:
    """Return the line of a definition that has an attribute."""
    kind = "Bool" if isinstance(value, bool) else "Float" if isinstance(value, float) else "Int"
    return f'        this->Attr("{name}").AttrType(REQUIRED).{kind}();\n'
