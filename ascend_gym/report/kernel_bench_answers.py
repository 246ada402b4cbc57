"""Answers of MultiKernelBench for Ascend C: read as data and never executed, and written out of candidates.

An answer is a Python text that assigns six strings: ``project_json_src``, ``host_tiling_src`` (the layout of
the tiling data), ``host_operator_src`` (tiling function, shape inference, definition), ``kernel_src``,
``python_bind_src`` and ``model_src``. The operator of task ``relu`` is called ``relu_custom`` there, and its
type ``ReluCustom``. The second, third and fourth are what a candidate consists of. The last two bind the
operator to PyTorch: what they do beside calling it, such as permuting axes, is not evaluated here.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import AttributeValue, Candidate, DType, OpSpec, SourceFile, Sources
from ascend_gym.suite.skeleton import Interface, Parameter, attribute_definition, interface_of

_NAMES = (
    "project_json_src",
    "host_tiling_src",
    "host_operator_src",
    "kernel_src",
    "python_bind_src",
    "model_src",
)
_NEEDED = ("host_tiling_src", "host_operator_src", "kernel_src")
_MAX_CHARS = 1_000_000
_FENCED = re.compile(r"^(```+|~~~+)[ \t]*\w*[ \t]*\n(.*?)^\1[ \t]*$", re.M | re.S)
_TILING = re.compile(r"BEGIN_TILING_DATA_DEF\(.*?REGISTER_TILING_DATA_CLASS\([^)]*\);?\n", re.S)
_REGISTERED = re.compile(r"\bOP_ADD\(\s*(\w+)\s*\)")
_ENTRY = re.compile(r"__global__[^;{(]*?\b(\w+)\s*\(")
_HEADER = re.compile(r'#include\s+"(\w+_tiling\.h)"')
_DEFINED = re.compile(r":\s*OpDef\(\s*\w+\s*\)\s*\{")
_MACROS = ("DTYPE_", "ORIG_DTYPE_", "FORMAT_")
_OUTPUT = re.compile(r"^// output (\w+)\[(.*)\], ", re.M)
_INPUT = re.compile(r"^// input (\w+)\[(.*)\], ", re.M)
_JSON_TYPES = {
    DType.FLOAT32: "float",
    DType.FLOAT16: "float16",
    DType.INT32: "int32",
    DType.UINT8: "uint8",
    DType.BOOL: "bool",
}


@dataclass(frozen=True)
class KernelBenchAnswer:
    """The strings of an answer, by name; those that it does not assign are missing."""

    texts: dict[str, str]

    @property
    def text(self) -> str:
        """The answer as a Python text."""
        return "\n".join(f"{name} = {_quoted(self.texts[name])}\n" for name in _NAMES if name in self.texts)


def read_answer(text: str) -> KernelBenchAnswer:
    """Return the strings of an answer, which may stand in a fenced block.

    Raises:
        MisuseError: it is no Python text, or assigns none of the strings that a candidate is made of.
    """
    if len(text) > _MAX_CHARS:
        raise MisuseError(f"the answer has {len(text)} characters, expected at most {_MAX_CHARS}")
    blocks = [match[2] for match in _FENCED.finditer(text) if "kernel_src" in match[2]]
    try:
        tree = ast.parse(blocks[0] if blocks else text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise MisuseError(f"the answer is no Python text: {error}") from error
    found = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in _NAMES and isinstance(node.value.value, str)
    }
    missing = [name for name in _NEEDED if name not in found]
    if missing:
        raise MisuseError(f"the answer assigns no plain string to {', '.join(missing)}")
    return KernelBenchAnswer(found)


def candidate_of(answer: KernelBenchAnswer, spec: OpSpec) -> Candidate:
    """Return an answer as a candidate for one of our operators, under the operator's names.

    Tensors and attributes of its definition are ours in the same order; attributes that it lacks, because it
    takes them for constants, are added.

    Raises:
        MisuseError: the answer registers no operator, or has no kernel entry.
    """
    op_type = _REGISTERED.search(answer.texts["host_operator_src"])
    entry = _ENTRY.search(answer.texts["kernel_src"])
    if op_type is None or entry is None:
        missing = "OP_ADD(..) in host_operator_src" if op_type is None else "a __global__ entry in kernel_src"
        raise MisuseError(f"expected {missing}, there is none")
    host_text, macros = _with_our_names(answer.texts["host_operator_src"], interface_of(spec))
    names = {op_type[1]: spec.op_type, entry[1]: spec.name, **macros}
    included = _HEADER.search(answer.texts["host_operator_src"])
    header = f"op_host/{included[1] if included else f'{entry[1]}_tiling.h'}"
    host, kernel = f"op_host/{spec.name}.cpp", f"op_kernel/{spec.name}.cpp"
    files = (
        SourceFile(path=host, text=_renamed(host_text, names)),
        SourceFile(path=header, text=f"#pragma once\n{_renamed(answer.texts['host_tiling_src'], names)}"),
    )
    device = SourceFile(path=kernel, text=_renamed(answer.texts["kernel_src"], names))
    return Candidate(host=Sources(files=files, main=host), kernel=Sources(files=(device,), main=kernel))


def _with_our_names(host: str, interface: Interface) -> tuple[str, dict[str, str]]:
    """Return a host with our tensors and attributes, and what the macros of the kernel are called then."""
    macros: dict[str, str] = {}
    for kind, parameters in (("Input", interface.inputs), ("Output", interface.outputs)):
        theirs = re.findall(rf'\b{kind}\(\s*"(\w+)"\s*\)', host)
        for old, new in zip(theirs, parameters, strict=False):
            macros |= {f"{macro}{old.upper()}": f"{macro}{new.name.upper()}" for macro in _MACROS}
        host = _in_order(host, kind, [each.name for each in parameters])
    known = len(re.findall(r'\bAttr\(\s*"\w+"\s*\)', host))
    host = _in_order(host, "Attr", [name for name, _ in interface.attributes])
    lacking = "".join(attribute_definition(name, value) for name, value in interface.attributes[known:])
    return _DEFINED.sub(lambda head: f"{head[0]}\n{lacking}", host, count=1), macros


def _in_order(host: str, kind: str, names: list[str]) -> str:
    """Return a definition whose first parameters of a kind have other names."""
    left = iter(names)
    pattern = re.compile(rf'(\b{kind}\(\s*")(\w+)("\s*\))')
    return pattern.sub(lambda found: f"{found[1]}{next(left, found[2])}{found[3]}", host)


def answer_of(candidate: Candidate, spec: OpSpec) -> KernelBenchAnswer:
    """Return a candidate whose tiling data stand in its main file as an answer.

    Attributes are passed as those of the operator's first case.

    Raises:
        MisuseError: the candidate has several files on a side, or its tiling data elsewhere.
    """
    interface, custom = interface_of(spec), f"{task_of(spec.name)}_custom"
    definition = _TILING.search(candidate.tiling_text)
    if definition is None or len(candidate.texts) != 2:
        raise MisuseError(
            f"{spec.op_id}: expected one file on each side, the tiling data in that of the host"
        )
    names = {spec.name: custom, spec.op_type: pascal(custom)}
    header = f'#include "register/tilingdata_base.h"\n\nnamespace optiling {{\n{definition[0]}}}\n'
    rest = _TILING.sub("", candidate.tiling_text, count=1)
    texts = {
        "project_json_src": _project(interface, pascal(custom)),
        "host_tiling_src": _renamed(header, names),
        "host_operator_src": f'#include "{custom}_tiling.h"\n{_renamed(rest, names)}',
        "kernel_src": _renamed(candidate.kernel_text, names),
        "python_bind_src": _binding(interface, spec, custom),
        "model_src": _model(interface, custom),
    }
    return KernelBenchAnswer(texts)


def task_of(name: str) -> str:
    """Return the name that MultiKernelBench has for the task of one of our operators."""
    return f"{name}_over_a_dimension" if name.endswith("_reduction") else name


def pascal(name: str) -> str:
    """Return a name with underscores in the form that MultiKernelBench gives to types."""
    return "".join(part.capitalize() for part in name.split("_"))


def _renamed(text: str, names: dict[str, str]) -> str:
    """Return a C++ text with other identifiers; words in quotes and includes change, too."""
    return re.sub(r"\b\w+\b", lambda word: names.get(word[0], word[0]), text)


def _quoted(text: str) -> str:
    """Return a string literal on several lines that holds a text."""
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if escaped.endswith('"'):
        escaped = f'{escaped[:-1]}\\"'
    return f'"""{escaped}"""'


def _project(interface: Interface, op_type: str) -> str:
    def described(parameters: tuple[Parameter, ...]) -> list[dict[str, object]]:
        return [
            {
                "name": each.name,
                "param_type": "required",
                "format": ["ND"] * len(each.dtypes),
                "type": [_JSON_TYPES[dtype] for dtype in each.dtypes],
            }
            for each in parameters
        ]

    attributes = [
        {"name": name, "param_type": "required", "type": _kind(value)} for name, value in interface.attributes
    ]
    document: dict[str, object] = {
        "op": op_type,
        "language": "cpp",
        "input_desc": described(interface.inputs),
        "output_desc": described(interface.outputs),
    }
    if attributes:
        document["attr"] = attributes
    return json.dumps([document], indent=4)


def _kind(value: AttributeValue) -> str:
    return "bool" if isinstance(value, bool) else "float" if isinstance(value, float) else "int"


def _binding(interface: Interface, spec: OpSpec, custom: str) -> str:
    """Return the C++ that calls the operator with tensors of PyTorch."""
    tensors = ", ".join(f"const at::Tensor& {each.name}" for each in interface.inputs)
    kinds = {"bool": "bool", "float": "double", "int": "int64_t"}
    given = "".join(f", {kinds[_kind(value)]} {name}" for name, value in interface.attributes)
    made = "\n".join(_allocation(interface, spec, number) for number in range(len(interface.outputs)))
    outputs = [f"{each.name}Made" for each in interface.outputs]
    passed = [
        *(each.name for each in interface.inputs),
        *(name for name, _ in interface.attributes),
        *outputs,
    ]
    several = len(outputs) > 1
    result = "std::vector<at::Tensor>" if several else "at::Tensor"
    returned = f"{{{', '.join(outputs)}}}" if several else outputs[0]
    return (
        '#include <torch/extension.h>\n#include "pytorch_npu_helper.hpp"\n\n'
        f"{result} {custom}_call({tensors}{given})\n{{\n{made}\n"
        f"    EXEC_NPU_CMD(aclnn{pascal(custom)}, {', '.join(passed)});\n    return {returned};\n}}\n\n"
        f'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)\n{{\n    m.def("{custom}", &{custom}_call);\n}}\n'
    )


def _allocation(interface: Interface, spec: OpSpec, number: int) -> str:
    """Return the statement that makes an output: like an input, or of extents that follow from inputs."""
    name, twin = interface.outputs[number].name, interface.shapes[number]
    if twin >= 0:
        return f"    at::Tensor {name}Made = at::empty_like({interface.inputs[twin].name});"
    comment = spec.baseline.kernel_text
    extents = dict(_OUTPUT.findall(comment))[name]
    known = {
        symbol.strip(): f"{tensor}.size({axis})"
        for tensor, shape in _INPUT.findall(comment)
        for axis, symbol in enumerate(shape.split(","))
        if symbol.strip().isidentifier()
    }
    sizes = [
        re.sub(r"[A-Za-z_]\w*", lambda word: known.get(word[0], word[0]), each.strip()).replace("//", "/")
        for each in extents.split(",")
        if each.strip()
    ]
    like = f"{interface.inputs[0].name}.options()"
    return f"    at::Tensor {name}Made = at::empty({{{', '.join(sizes)}}}, {like});"


def _model(interface: Interface, custom: str) -> str:
    attributes = "".join(f", {value!r}" for _, value in interface.attributes)
    return (
        "import torch\nimport torch_npu\nimport custom_ops_lib\n\n\nclass ModelNew(torch.nn.Module):\n"
        "    def __init__(self, *settings) -> None:\n        super().__init__()\n\n"
        "    def forward(self, *tensors):\n"
        f"        return custom_ops_lib.{custom}(*tensors{attributes})\n"
    )
