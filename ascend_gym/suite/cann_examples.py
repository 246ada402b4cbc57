"""Loads cann-ops operator folders that have an aclnn example instead of our ``op.toml``.

Parameter names and dtype columns come from the OpDef in ``op_host``; shapes, dtypes and attribute values from
the aclnn call that ``examples/AclNNInvocationNaive/main.cpp`` makes (see ``cann_record``); sources from what
``CMakeLists.txt`` builds (see ``cann_sources``); the tolerance is the ``LOSS`` of ``verify_result.py``.
Folders that say these things in another way are refused with the reason.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import AttributeValue, Candidate, Case, DType, OpSpec, TensorSpec, Tolerance
from ascend_gym.suite.cann_binding import Binding, bind
from ascend_gym.suite.cann_gen_data import run_gen_data
from ascend_gym.suite.cann_opdef import (
    OperatorDef,
    ParameterDef,
    defines_operator,
    expand_macros,
    read_opdef,
)
from ascend_gym.suite.cann_record import Argument, RecordedCall, record_call, recorder_program
from ascend_gym.suite.cann_sources import BuildFile, read_build_file, read_cann_candidate
from ascend_gym.suite.compare import UPSTREAM_LOSS

EXAMPLE_FOLDER = "examples/AclNNInvocationNaive"
CASE_ID = "example"

_LEVEL = 2  # cann-ops folders carry no difficulty level: the middle one
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
class Example:
    """What an example folder says: the one case it runs, and which arguments of its call make it up."""

    definition: OperatorDef
    case: Case
    binding: Binding


def has_example(folder: Path) -> bool:
    """Say whether a folder has the two files that an operator without ``op.toml`` is read from."""
    return all((folder / EXAMPLE_FOLDER / name).is_file() for name in ("gen_data.py", "main.cpp"))


def read_example_spec(folder: Path, op_id: str, folder_digest: str) -> OpSpec:
    """Load a cann-ops folder as an operator with one case.

    Raises:
        OperatorFormatError: the folder says something in a way that is not understood; the message says what.
        InfrastructureError: there is no g++.
    """
    build = read_build_file(folder)
    candidate = read_cann_candidate(folder, build)
    example = _example(folder, build, candidate)
    return OpSpec(
        op_id=op_id,
        op_type=example.definition.op_type,
        folder=str(folder),
        level=_LEVEL,
        category=folder.parent.name,
        description=f"{example.definition.op_type} of a cann-ops checkout, as its aclnn example runs it",
        auto_sync=build.auto_sync,
        cases=(example.case,),
        baseline=candidate,
        folder_digest=folder_digest,
    )


def read_example(folder: Path) -> Example:
    """Read the definition and the example of a cann-ops folder.

    Raises:
        OperatorFormatError: see ``read_example_spec``.
        InfrastructureError: there is no g++.
    """
    build = read_build_file(folder)
    return _example(folder, build, read_cann_candidate(folder, build))


def call_arguments(call: RecordedCall) -> tuple[Argument, ...]:
    """Return the arguments of a recorded call without the results that every aclnn call ends with."""
    return tuple(argument for argument in call.arguments if argument.kind != "result")


def _example(folder: Path, build: BuildFile, candidate: Candidate) -> Example:
    definition = _definition(folder, build, candidate)
    program = recorder_program(folder / EXAMPLE_FOLDER / "main.cpp")
    try:
        call, written = _run_example(folder, program, with_data=False)
        complete = _is_complete(call)
    except OperatorFormatError:
        complete = False
    if not complete:  # its shapes or values come from the files of gen_data.py
        call, written = _run_example(folder, program, with_data=True)
    arguments = call_arguments(call)
    if not definition.outputs:
        definition = _with_results(definition, arguments, written)
    binding = bind(definition, arguments, call.function)
    try:
        return Example(definition, _case(folder, definition, arguments, binding), binding)
    except ValidationError as error:
        raise OperatorFormatError(f"{folder}/{EXAMPLE_FOLDER}: {error.errors()[0]['msg']}") from error


def _run_example(folder: Path, program: Path, *, with_data: bool) -> tuple[RecordedCall, set[int]]:
    """Return the call of the example and the numbers of the tensors that it writes to files afterwards."""
    with tempfile.TemporaryDirectory(prefix="ascend-gym-example-") as scratch:
        work, record_dir = Path(scratch) / "example", Path(scratch) / "record"
        record_dir.mkdir()
        if with_data:
            shutil.copytree(folder / EXAMPLE_FOLDER, work)
            run_gen_data(work, seed=0)
        (work / "output").mkdir(parents=True, exist_ok=True)
        before = {path: path.read_bytes() for path in (work / "output").iterdir()}
        call = record_call(program, work / "output", record_dir)
        after = {path: path.read_bytes() for path in (work / "output").iterdir()}
    return call, {data[0] for path, data in after.items() if data and data != before.get(path)}


def _is_complete(call: RecordedCall) -> bool:
    """Say whether every tensor and array of a call has elements."""
    tensors = [tensor for argument in call.arguments for tensor in argument.tensors]
    arrays = [argument.value for argument in call.arguments if isinstance(argument.value, list)]
    return all(arrays) and all(0 not in tensor.shape for tensor in tensors)


def _with_results(definition: OperatorDef, arguments: tuple[Argument, ...], written: set[int]) -> OperatorDef:
    """Return a definition without outputs with those inputs as outputs that the example writes to files."""
    binding = bind(definition, arguments, definition.op_type)
    results = [
        parameter
        for parameter, position in zip(definition.inputs, binding.inputs, strict=True)
        if position is not None and written & {tensor.number for tensor in arguments[position].tensors}
    ]
    if not results:
        raise OperatorFormatError(
            f"main.cpp: {definition.op_type} has no outputs and no input is written back"
        )
    return replace(definition, outputs=tuple(results))


def _definition(folder: Path, build: BuildFile, candidate: Candidate) -> OperatorDef:
    texts = [file.text for file in reversed(candidate.host.files)]  # headers last, so first here
    spelled = [text for text in texts if defines_operator(text)]
    # a definition that macros write: the macros stand in shared headers
    text = "\n".join(spelled) or expand_macros(text for text in texts if "OPDEF" in text)
    return read_opdef(text, f"{folder}/op_host", build.op_type)


def _case(folder: Path, definition: OperatorDef, arguments: tuple[Argument, ...], binding: Binding) -> Case:
    columns = _matching_columns(definition, arguments, binding)
    outputs = [
        _tensor_spec(parameter, arguments[position])
        for parameter, position in zip(definition.outputs, binding.outputs, strict=True)
    ]
    return Case(
        case_id=CASE_ID,
        inputs=tuple(
            _input_spec(parameter, None if position is None else arguments[position], columns)
            for parameter, position in zip(definition.inputs, binding.inputs, strict=True)
        ),
        outputs=tuple(outputs),
        attributes={
            attribute.name: _attribute_value(attribute.type, arguments[binding.attributes[attribute.name]])
            for attribute in definition.attributes
            if attribute.name in binding.attributes
        },
        tolerance=_tolerance(folder, outputs),
    )


def _matching_columns(
    definition: OperatorDef, arguments: tuple[Argument, ...], binding: Binding
) -> list[int]:
    """Return the dtype combinations of the definition that the tensors of the call have."""
    parameters = [*definition.inputs, *definition.outputs]
    positions = [*binding.inputs, *binding.outputs]
    given = [
        (parameter.dtypes, arguments[position].tensors[0].dtype)
        for parameter, position in zip(parameters, positions, strict=True)
        if parameter.dtypes and position is not None and arguments[position].kind in ("tensor", "list")
    ]
    count = max((len(dtypes) for dtypes, _ in given), default=0)
    columns = [
        column
        for column in range(count)
        if all(column < len(dtypes) and dtypes[column] is dtype for dtypes, dtype in given)
    ]
    if given and not columns:
        raise OperatorFormatError(
            f"main.cpp: the definition of {definition.op_type} has no dtype combination "
            f"{[dtype.value for _, dtype in given]}"
        )
    return columns


def _input_spec(parameter: ParameterDef, argument: Argument | None, columns: list[int]) -> TensorSpec:
    if argument is None:
        dtype = next((dtype for dtype in parameter.dtypes if dtype is not None), DType.FLOAT32)
        if columns and columns[0] < len(parameter.dtypes):
            dtype = parameter.dtypes[columns[0]] or dtype
        return TensorSpec(
            name=parameter.name,
            dtype=dtype,
            shapes=() if parameter.dynamic else ((0,),),
            dynamic=parameter.dynamic,
            optional_absent=True,
        )
    if argument.kind in ("tensor", "list"):
        return _tensor_spec(parameter, argument)
    return _constant_spec(parameter, argument, columns)


def _tensor_spec(parameter: ParameterDef, argument: Argument) -> TensorSpec:
    if not argument.tensors:
        raise OperatorFormatError(f"main.cpp: {parameter.name} is an empty list of tensors")
    if not all(tensor.contiguous for tensor in argument.tensors):
        raise OperatorFormatError(f"main.cpp: {parameter.name} is not contiguous")
    return TensorSpec(
        name=parameter.name,
        dtype=argument.tensors[0].dtype,
        shapes=tuple(tensor.shape for tensor in argument.tensors),
        dynamic=parameter.dynamic,
    )


def _constant_spec(parameter: ParameterDef, argument: Argument, columns: list[int]) -> TensorSpec:
    """Return the small tensor that a scalar or an array becomes, in the dtype that the kernel takes."""
    count = len(argument.tensors) or (len(argument.value) if isinstance(argument.value, list) else 1)
    dtype = argument.tensors[0].dtype if argument.tensors else _CONSTANT_DTYPES[argument.kind]
    if columns and columns[0] < len(parameter.dtypes):
        dtype = parameter.dtypes[columns[0]] or dtype
    return TensorSpec(name=parameter.name, dtype=dtype, shapes=((count,),))


def _attribute_value(kind: str, argument: Argument) -> AttributeValue:
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
