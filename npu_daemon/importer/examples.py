"""Reads an operator folder of cann-ops with an aclnn example: its definition and one case.

Parameter names and dtype columns come from the OpDef in ``op_host``; shapes, dtypes and attribute values from
the aclnn call that ``examples/AclNNInvocationNaive/main.cpp`` makes (see ``record``); the tolerance is the
``LOSS`` of ``verify_result.py``. Folders with another structure are refused with the reason.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import AttributeValue, Candidate, Case, DType, TensorSpec, Tolerance
from ascend_gym.core.toml_file import reason_of
from ascend_gym.suite.cann_opdef import (
    OperatorDef,
    ParameterDef,
    defines_operator,
    expand_macros,
    read_opdef,
)
from ascend_gym.suite.cann_sources import BuildFile, read_build_file, read_cann_candidate
from ascend_gym.suite.compare import UPSTREAM_LOSS
from ascend_gym.suite.imported import EXAMPLE_FOLDER
from npu_daemon.importer.binding import Binding, bind
from npu_daemon.importer.layers import Layer, layer_of
from npu_daemon.importer.record import CallArgument, RecordedCall, record_call, record_folder
from npu_daemon.importer.references import referenced_outputs

CASE_ID = "example"

_LOSS = re.compile(r"^LOSS\s*=\s*([0-9.eE+-]+)", re.MULTILINE)
_CONSTANT_DTYPES = {
    "ints": DType.INT64,
    "floats": DType.FLOAT32,
    "bools": DType.BOOL,
    "int": DType.INT64,
    "float": DType.FLOAT32,
    "bool": DType.BOOL,
}
_NUMBER_ATTRIBUTES: dict[str, type[int | bool | float]] = {"Int": int, "Bool": bool, "Float": float}


@dataclass(frozen=True)
class RecordedExample:
    """Contents of an example folder.

    Attributes:
        definition: operator, with the outputs that the call requests.
        case: the case that it runs.
        binding: arguments of the call that make up the case.
        shapes: shapes of all tensors of the call.
    """

    definition: OperatorDef
    case: Case
    binding: Binding
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Recording:
    """Files written by the programs of an example for one variant of its data.

    Attributes:
        work: copy of the example folder in which they ran.
        call: aclnn call.
        generated: files below ``output`` that gen_data.py wrote, by name.
        written: files below ``output`` that main.cpp wrote, by name.
    """

    work: Path
    call: RecordedCall
    generated: dict[str, bytes]
    written: dict[str, bytes]

    @property
    def tensors(self) -> Path:
        """Folder with the files of the tensors of the call."""
        return record_folder(self.work)

    @property
    def written_bytes(self) -> dict[int, int]:
        """Number of bytes of each tensor, by its number, that main.cpp wrote."""
        return {data[0]: len(data) for data in self.written.values() if data}


def record_example(work: Path, program: Path) -> Recording:
    """Run the compiled ``main.cpp`` of an example in a copy of its folder, after gen_data.py.

    Raises:
        OperatorFormatError: it ends before its aclnn call.
    """
    generated = _files(work / "output")
    call = record_call(program, work)
    after = _files(work / "output")
    written = {name: data for name, data in after.items() if data != generated.get(name)}
    return Recording(work, call, generated, written)


def read_definition(folder: Path) -> OperatorDef:
    """Read the operator definition of a cann-ops folder.

    Raises:
        OperatorFormatError: the folder contains something that is not understood; the message says what.
        InfrastructureError: the compiler's package is not installed.
    """
    build = read_build_file(folder)
    return _definition(folder, build, read_cann_candidate(folder, build))


def read_example(folder: Path, definition: OperatorDef, recording: Recording) -> RecordedExample:
    """Read the example of a cann-ops folder.

    Raises:
        OperatorFormatError: its call does not fit the definition.
    """
    call, written = recording.call, recording.written_bytes
    arguments = call_arguments(call, definition.op_type)
    if not definition.outputs:
        definition = _with_results(definition, arguments, written)
    definition, binding = _bind_given(definition, arguments, call.function)
    try:
        case = _case(folder, definition, arguments, binding, written)
        shapes = tuple(tensor.shape for argument in call.arguments for tensor in argument.tensors)
        return RecordedExample(definition, case, binding, shapes)
    except ValidationError as error:
        raise OperatorFormatError(f"{folder}/{EXAMPLE_FOLDER}: {reason_of(error)}") from error


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def call_arguments(call: RecordedCall, op_type: str) -> tuple[CallArgument, ...]:
    """Return the arguments of a recorded call in the order of the definition.

    Workspace size and executor, with which every aclnn call ends, are left out.
    """
    given = [argument for argument in call.arguments if argument.kind != "result"]
    return tuple(layer_of(op_type).arrange(given))


def _bind_given(
    definition: OperatorDef, arguments: tuple[CallArgument, ...], function: str
) -> tuple[OperatorDef, Binding]:
    """Bind a call; optional outputs passed as null pointers are omitted from both."""
    binding = bind(definition, arguments, function)
    bound = zip(definition.outputs, binding.outputs, strict=True)
    given = {position: output for output, position in bound if arguments[position].kind != "absent"}
    return replace(definition, outputs=tuple(given.values())), replace(binding, outputs=tuple(given))


def _with_results(
    definition: OperatorDef, arguments: tuple[CallArgument, ...], written: dict[int, int]
) -> OperatorDef:
    """Return a definition without outputs with the inputs that the example writes to files as outputs."""
    binding = bind(definition, arguments, definition.op_type)
    results = [
        parameter
        for parameter, position in zip(definition.inputs, binding.inputs, strict=True)
        if parameter.name in referenced_outputs(definition.op_type)
        or (position is not None and _numbers(arguments[position]) & written.keys())
    ]
    if not results:
        raise OperatorFormatError(
            f"main.cpp: {definition.op_type} has no outputs and no input is written back"
        )
    return replace(definition, outputs=tuple(results))


def _definition(folder: Path, build: BuildFile, candidate: Candidate) -> OperatorDef:
    texts = [file.text for file in reversed(candidate.host.files)]  # headers last, so first here
    spelled = [text for text in texts if defines_operator(text)]
    # A definition generated by macros, which are in shared headers.
    text = "\n".join(spelled) or expand_macros(text for text in texts if "OPDEF" in text)
    return read_opdef(text, f"{folder}/op_host", build.op_type)


def _case(
    folder: Path,
    definition: OperatorDef,
    arguments: tuple[CallArgument, ...],
    binding: Binding,
    written: dict[int, int],
) -> Case:
    layer = layer_of(definition.op_type)
    handwritten = any((folder / "op_host").glob("aclnn_*.cpp"))
    columns = _matching_columns(definition, arguments, binding, may_cast=handwritten)
    compared = referenced_outputs(definition.op_type)
    outputs = [
        _tensor_spec(parameter, _as_read(arguments[position], written), columns, layer).model_copy(
            update={
                "open": parameter.name not in compared and not _numbers(arguments[position]) & written.keys()
            }
        )
        for parameter, position in zip(definition.outputs, binding.outputs, strict=True)
    ]
    return Case(
        case_id=CASE_ID,
        inputs=tuple(
            _input_spec(parameter, None if position is None else arguments[position], columns, layer)
            for parameter, position in zip(definition.inputs, binding.inputs, strict=True)
        ),
        outputs=tuple(outputs),
        attributes={
            attribute.name: _attribute_value(attribute.type, arguments[binding.attributes[attribute.name]])
            for attribute in definition.attributes
            if attribute.name in binding.attributes
        }
        | dict(layer.attributes),
        tolerance=_tolerance(folder, outputs),
    )


def _matching_columns(
    definition: OperatorDef, arguments: tuple[CallArgument, ...], binding: Binding, *, may_cast: bool
) -> list[int]:
    """Return the dtype combinations of the definition that match the tensors of the call.

    A hand-written aclnn function casts tensors to the types of its kernel (``may_cast``): if no combination
    matches, the first of those with the fewest casts counts.

    Args:
        definition: operator definition.
        arguments: arguments of the call.
        binding: positions of the arguments.
        may_cast: whether the function casts.
    """
    parameters = [*definition.inputs, *definition.outputs]
    positions = [*binding.inputs, *binding.outputs]
    given = [
        (parameter.dtypes, arguments[position].tensors[0].dtype)
        for parameter, position in zip(parameters, positions, strict=True)
        if parameter.dtypes and position is not None and arguments[position].kind in ("tensor", "list")
    ]
    count = max((len(dtypes) for dtypes, _ in given), default=0)
    casts = [
        sum(column >= len(dtypes) or dtypes[column] is not dtype for dtypes, dtype in given)
        for column in range(count)
    ]
    if given and min(casts) > 0 and not may_cast:
        raise OperatorFormatError(
            f"main.cpp: the definition of {definition.op_type} has no dtype combination "
            f"{[dtype.value for _, dtype in given]}"
        )
    fewest = min(casts, default=0)
    fitting = [column for column, needed in enumerate(casts) if needed == fewest]
    return fitting if fewest == 0 else fitting[:1]


def _as_read(argument: CallArgument, written: dict[int, int]) -> CallArgument:
    """Return a result with the shapes that the example reads.

    Some examples declare a result as large as an input, but only write its leading elements.
    """
    tensors = []
    for tensor in argument.tensors:
        read_bytes = written.get(tensor.number, 0)
        shape = (read_bytes * 8 // tensor.dtype.bits,)
        few = shape[0] > 0 and read_bytes < math.prod(tensor.shape)
        tensors.append(tensor.model_copy(update={"shape": shape}) if few else tensor)
    return argument.model_copy(update={"tensors": tuple(tensors)})


def _numbers(argument: CallArgument) -> set[int]:
    return {tensor.number for tensor in argument.tensors}


def _column_dtype(parameter: ParameterDef, columns: list[int]) -> DType | None:
    """Return the element type of a parameter in the chosen dtype combination."""
    return parameter.dtypes[columns[0]] if columns and columns[0] < len(parameter.dtypes) else None


def _input_spec(
    parameter: ParameterDef, argument: CallArgument | None, columns: list[int], layer: Layer
) -> TensorSpec:
    if argument is None:
        dtype = next((dtype for dtype in parameter.dtypes if dtype is not None), DType.FLOAT32)
        return TensorSpec(
            name=parameter.name,
            dtype=_column_dtype(parameter, columns) or dtype,
            shapes=() if parameter.dynamic else ((0,),),
            dynamic=parameter.dynamic,
            optional_absent=True,
        )
    if argument.kind in ("tensor", "list"):
        return _tensor_spec(parameter, argument, columns, layer)
    return _constant_spec(parameter, argument, columns)


def _tensor_spec(
    parameter: ParameterDef, argument: CallArgument, columns: list[int], layer: Layer
) -> TensorSpec:
    if not argument.tensors:
        raise OperatorFormatError(f"main.cpp: {parameter.name} is an empty list of tensors")
    if not all(tensor.contiguous for tensor in argument.tensors):
        raise OperatorFormatError(f"main.cpp: {parameter.name} is not contiguous")
    return TensorSpec(
        name=parameter.name,
        dtype=_column_dtype(parameter, columns) or argument.tensors[0].dtype,
        shapes=tuple(layer.shape(parameter.name, tensor.shape) for tensor in argument.tensors),
        dynamic=parameter.dynamic,
    )


def _constant_spec(parameter: ParameterDef, argument: CallArgument, columns: list[int]) -> TensorSpec:
    """Return the small tensor for a scalar or an array, in the dtype of the kernel."""
    count = len(argument.tensors) or (len(argument.value) if isinstance(argument.value, list) else 1)
    dtype = argument.tensors[0].dtype if argument.tensors else _CONSTANT_DTYPES[argument.kind]
    dtype = _column_dtype(parameter, columns) or dtype
    return TensorSpec(name=parameter.name, dtype=dtype, shapes=((count,),))


def _attribute_value(kind: str, argument: CallArgument) -> AttributeValue:
    if argument.kind == "scalar":
        raise OperatorFormatError(f"main.cpp passes a scalar object for an attribute of type {kind}")
    convert = _NUMBER_ATTRIBUTES.get(kind)
    if convert is not None:
        return convert(argument.value)
    return tuple(argument.value) if isinstance(argument.value, list) else str(argument.value)


def _tolerance(folder: Path, outputs: list[TensorSpec]) -> dict[DType, Tolerance]:
    script = folder / EXAMPLE_FOLDER / "verify_result.py"
    text = script.read_text(encoding="utf-8", errors="replace") if script.is_file() else ""
    loss = _LOSS.search(text)
    share = float(loss.group(1)) if loss else UPSTREAM_LOSS
    return {
        tensor.dtype: Tolerance(atol=share, rtol=share, max_bad_share=share)
        for tensor in outputs
        if tensor.dtype.is_floating
    }
