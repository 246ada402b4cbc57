"""Loads cann-ops operator folders that have an aclnn example instead of our ``op.toml``.

Parameter names and dtype columns come from the OpDef in ``op_host``; shapes, dtypes, attribute values and
input files from ``examples/AclNNInvocationNaive/main.cpp``, whose call of ``aclnn<Op>GetWorkspaceSize`` gives
inputs, attributes and outputs in the order of the definition; the tolerance is the script's ``LOSS``.
Folders that say these things in another way are refused with the reason.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import AttributeValue, Case, DType, OpSpec, TensorSpec, Tolerance
from ascend_gym.suite.cann_opdef import (
    DTYPE_BY_SUFFIX,
    OperatorDef,
    ParameterDef,
    read_opdef,
    without_comments,
)
from ascend_gym.suite.compare import UPSTREAM_LOSS
from ascend_gym.suite.sources import read_candidate

EXAMPLE_FOLDER = "examples/AclNNInvocationNaive"
CASE_ID = "example"

_LEVEL = 2  # cann-ops folders carry no difficulty level: the middle one

_SHAPE = re.compile(r"std::vector<int64_t>\s+(\w+)\s*=\s*\{([^}]*)\}")
_TENSOR = re.compile(
    r"CreateAclTensor\(\s*(\w+)\s*,\s*(\w+)\s*,[^,]+,\s*(?:aclDataType::)?ACL_(\w+)\s*,\s*&(\w+)"
)
_CALL = re.compile(r"\baclnn\w+GetWorkspaceSize\(([^;]*?),\s*&\w+\s*,\s*&\w+\s*\)")
_READ = re.compile(r'\bReadFile\(\s*"([^"]+)"\s*,\s*\w+\s*,\s*\*?(\w+)')
_BUFFER = re.compile(r"\b(\w+)\s*=\s*\(\s*void\s*\*\*\s*\)\s*\(\s*&(\w+)\s*\)")
_VECTOR = re.compile(r"std::vector<[\w:]+>\s+(\w+)\s*=\s*\{([^}]*)\}")
_LOSS = re.compile(r"^LOSS\s*=\s*([0-9.eE+-]+)", re.MULTILINE)


@dataclass(frozen=True)
class ExampleInput:
    """Where the example takes one input from: a file that gen_data.py writes, or literals in main.cpp."""

    name: str
    file: str | None
    literals: tuple[float, ...]


@dataclass(frozen=True)
class Example:
    """What an example folder says: the one case it runs and the origin of its inputs."""

    definition: OperatorDef
    case: Case
    inputs: tuple[ExampleInput, ...]


@dataclass(frozen=True)
class _AclTensor:
    shape: tuple[int, ...]
    dtype: DType
    host_data: str


def has_example(folder: Path) -> bool:
    """Say whether a folder has the two files that an operator without ``op.toml`` is read from."""
    return all((folder / EXAMPLE_FOLDER / name).is_file() for name in ("gen_data.py", "main.cpp"))


def read_example_spec(folder: Path, op_id: str, folder_digest: str) -> OpSpec:
    """Load a cann-ops folder as an operator with one case.

    Raises:
        OperatorFormatError: the folder says something in a way that is not understood; the message says what.
    """
    example = read_example(folder)
    return OpSpec(
        op_id=op_id,
        op_type=example.definition.op_type,
        folder=str(folder),
        level=_LEVEL,
        category=folder.parent.name,
        description=f"{example.definition.op_type} of a cann-ops checkout, as its aclnn example runs it",
        auto_sync="--cce-auto-sync=off" not in _text(folder / "CMakeLists.txt"),
        cases=(example.case,),
        baseline=read_candidate(folder, folder.name),
        folder_digest=folder_digest,
    )


def read_example(folder: Path) -> Example:
    """Read the definition and the example of a cann-ops folder.

    Raises:
        OperatorFormatError: see ``read_example_spec``.
    """
    definition = read_opdef(
        "\n".join(_text(path) for path in sorted((folder / "op_host").glob("*.cpp"))), f"{folder}/op_host"
    )
    where = f"{folder}/{EXAMPLE_FOLDER}/main.cpp"
    code = without_comments(_text(folder / EXAMPLE_FOLDER / "main.cpp"))
    inputs, attributes, outputs = _split_call(definition, code, where)
    tensors = _acl_tensors(code)
    specs = {
        parameter.name: _tensor_spec(parameter, argument, tensors, where)
        for parameter, argument in [*inputs, *outputs]
    }
    _check_column(definition, specs, where)
    loss = _LOSS.search(_text(folder / EXAMPLE_FOLDER / "verify_result.py"))
    share = float(loss.group(1)) if loss else UPSTREAM_LOSS
    try:
        case = Case(
            case_id=CASE_ID,
            inputs=tuple(specs[parameter.name] for parameter, _ in inputs),
            outputs=tuple(specs[parameter.name] for parameter, _ in outputs),
            attributes={name: _literal(name, argument, code, where) for name, argument in attributes},
            tolerance={
                specs[parameter.name].dtype: Tolerance(atol=share, rtol=share, max_bad_share=share)
                for parameter, _ in outputs
                if specs[parameter.name].dtype.is_floating
            },
        )
    except ValidationError as error:
        raise OperatorFormatError(f"{where}: {error.errors()[0]['msg']}") from error
    origins = _input_origins([(p, a) for p, a in inputs if a != "nullptr"], tensors, code, where)
    return Example(definition, case, origins)


_Bound = list[tuple[ParameterDef, str]]


def _split_call(
    definition: OperatorDef, code: str, where: str
) -> tuple[_Bound, list[tuple[str, str]], _Bound]:
    """Bind the arguments of the aclnn call to the definition: inputs, attributes, outputs."""
    calls = _CALL.findall(code)
    if not calls:
        raise OperatorFormatError(f"{where}: no call of aclnn<Op>GetWorkspaceSize")
    arguments = [argument.strip() for argument in calls[0].split(",")]
    names = [*definition.inputs, *definition.attributes, *definition.outputs]
    if len(arguments) != len(names):
        raise OperatorFormatError(
            f"{where}: the aclnn call has {len(arguments)} arguments, the definition {len(names)} "
            f"inputs, attributes and outputs"
        )
    first, second = len(definition.inputs), len(definition.inputs) + len(definition.attributes)
    return (
        list(zip(definition.inputs, arguments[:first], strict=True)),
        list(zip(definition.attributes, arguments[first:second], strict=True)),
        list(zip(definition.outputs, arguments[second:], strict=True)),
    )


def _acl_tensors(code: str) -> dict[str, _AclTensor]:
    shapes = {
        name: tuple(int(extent) for extent in extents.split(",") if extent.strip())
        for name, extents in _SHAPE.findall(code)
        if re.fullmatch(r"[\d\s,]*", extents)
    }
    return {
        tensor: _AclTensor(shapes[shape], DTYPE_BY_SUFFIX[suffix], host_data)
        for host_data, shape, suffix, tensor in _TENSOR.findall(code)
        if shape in shapes and suffix in DTYPE_BY_SUFFIX
    }


def _tensor_spec(
    parameter: ParameterDef, argument: str, tensors: dict[str, _AclTensor], where: str
) -> TensorSpec:
    if parameter.dynamic:
        raise OperatorFormatError(f"{where}: {parameter.name} is a list of tensors, which is not read here")
    if argument == "nullptr" and parameter.optional:
        dtype = next((dtype for dtype in parameter.dtypes if dtype is not None), DType.FLOAT32)
        return TensorSpec(name=parameter.name, dtype=dtype, shapes=((0,),), optional_absent=True)
    if argument not in tensors:
        raise OperatorFormatError(
            f"{where}: no literal shape and known dtype for {argument!r}, which is passed as {parameter.name}"
        )
    tensor = tensors[argument]
    return TensorSpec(name=parameter.name, dtype=tensor.dtype, shapes=(tensor.shape,))


def _check_column(definition: OperatorDef, specs: dict[str, TensorSpec], where: str) -> None:
    parameters = [
        parameter
        for parameter in (*definition.inputs, *definition.outputs)
        if parameter.dtypes and not specs[parameter.name].optional_absent
    ]
    columns = zip(*(parameter.dtypes for parameter in parameters), strict=False)
    wanted = tuple(specs[parameter.name].dtype for parameter in parameters)
    if wanted not in list(columns):
        raise OperatorFormatError(
            f"{where}: the definition of {definition.op_type} has no dtype combination "
            f"{[dtype.value for dtype in wanted]}"
        )


def _literal(name: str, argument: str, code: str, where: str) -> AttributeValue:
    definition = re.search(rf"\b(?:[\w:]+\s*\*?)\s+{re.escape(argument)}\s*=\s*([^;]+);", code)
    text = (definition.group(1) if definition else argument).strip()
    if text in ("true", "false"):
        return text == "true"
    try:
        value = ast.literal_eval(re.sub(r"(?<=[\d.])[fFlLuU]+$", "", text))
    except (ValueError, SyntaxError):
        value = None
    if not isinstance(value, int | float | str):
        raise OperatorFormatError(f"{where}: attribute {name} is {text!r}, which is no plain literal")
    return value


def _input_origins(
    inputs: _Bound, tensors: dict[str, _AclTensor], code: str, where: str
) -> tuple[ExampleInput, ...]:
    buffers = dict(_BUFFER.findall(code))
    files = {buffers.get(buffer, buffer): Path(path).name for path, buffer in _READ.findall(code)}
    literals = dict(_VECTOR.findall(code))
    origins = []
    for parameter, argument in inputs:
        host_data = tensors[argument].host_data
        if host_data in files:
            origins.append(ExampleInput(parameter.name, files[host_data], ()))
            continue
        try:
            numbers = [part.strip().rstrip("fF") for part in literals[host_data].split(",") if part.strip()]
            origins.append(ExampleInput(parameter.name, None, tuple(float(number) for number in numbers)))
        except (KeyError, ValueError):
            raise OperatorFormatError(
                f"{where}: {host_data}, the data of {parameter.name}, is neither read from a file nor a "
                f"list of numbers"
            ) from None
    return tuple(origins)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise OperatorFormatError(f"{path}: cannot be read: {error}") from error
