"""Arguments of an operator's aclnn call, from its definition and a case.

A generated interface takes inputs, attributes and outputs in the order of the definition (Ascend C operator
development guide, single-operator API calls).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ascend_gym.core.errors import MisuseError, OperatorFormatError
from ascend_gym.core.records import Case, DType, OpSpec, TensorSpec
from ascend_gym.suite.cann_opdef import (
    AttributeDef,
    OperatorDef,
    ParameterDef,
    defines_operator,
    expand_macros,
    read_opdef,
)

# aclDataType of acl/acl_base.h
ACL_TYPES: Mapping[DType, int] = {
    DType.FLOAT32: 0,
    DType.FLOAT16: 1,
    DType.INT8: 2,
    DType.INT32: 3,
    DType.UINT8: 4,
    DType.INT16: 6,
    DType.UINT16: 7,
    DType.UINT32: 8,
    DType.INT64: 9,
    DType.UINT64: 10,
    DType.FLOAT64: 11,
    DType.BOOL: 12,
    DType.COMPLEX64: 16,
    DType.BFLOAT16: 27,
    DType.INT4: 29,
}
_ATTRIBUTE_KINDS = {
    "Int": "int64",
    "Float": "double",
    "Bool": "bool",
    "String": "string",
    "ListInt": "int64s",
    "ListFloat": "floats",
    "ListBool": "bools",
}
# Parameter types in generated headers; the first match counts.
_DECLARED = (
    ("aclTensorList", "list"),
    ("aclTensor", "tensor"),
    ("aclIntArray", "int64s"),
    ("aclFloatArray", "floats"),
    ("aclBoolArray", "bools"),
    ("char", "string"),
    ("double", "double"),
    ("bool", "bool"),
    ("int64_t", "int64"),
)
_MAX_REALS = 8  # kRealArguments of runner/call.h
_RESULTS = 2  # workspace size and executor, at the end of the first call
_SUFFIX = re.compile(r"[fFuUlL]+$")


@dataclass(frozen=True)
class TensorArgument:
    """One tensor, with the name of its file in the run's folder."""

    role: str
    name: str
    dtype: DType
    shape: tuple[int, ...]
    file: str

    @property
    def text(self) -> str:
        """Return it in the format of the runner."""
        size_bytes = self.dtype.size_bytes(math.prod(self.shape))
        shape = " ".join(str(extent) for extent in (len(self.shape), *self.shape))
        return f"{self.role} {self.name} {ACL_TYPES[self.dtype]} {size_bytes} {self.file} {shape}"


@dataclass(frozen=True)
class Argument:
    """One argument: its kind as the runner names it, and its tensors or the text of its value."""

    name: str
    kind: str
    tensors: tuple[TensorArgument, ...] = ()
    value: str = ""

    @property
    def line(self) -> str:
        """Return the line of the job file."""
        count = (str(len(self.tensors)),) if self.kind == "list" else ()
        parts = (self.kind, *count, *(tensor.text for tensor in self.tensors), self.value)
        return " ".join(part for part in ("argument", *parts) if part)


def interface_of(spec: OpSpec) -> OperatorDef:
    """Return the definition of an operator from its baseline.

    Raises:
        OperatorFormatError: it has no readable definition.
    """
    texts = [file.text for file in spec.baseline.host.files]
    plain = "\n".join(texts)
    text = plain if defines_operator(plain) else expand_macros(texts)
    return read_opdef(text, spec.op_id, spec.op_type)


def arguments_of(definition: OperatorDef, case: Case) -> tuple[Argument, ...]:
    """Return the arguments of the call for ``case``, without workspace size and executor.

    Raises:
        MisuseError: the case does not fit the definition, or needs a feature that this backend does not
            support.
    """
    inputs = {tensor.name for tensor in definition.inputs}
    outputs = {tensor.name for tensor in definition.outputs} | {tensor.name for tensor in case.outputs}
    in_place = sorted(inputs & outputs)
    if in_place:
        raise MisuseError(
            f"{', '.join(in_place)}: tensors that are computed in place are not passed to NPUs yet"
        )
    attributes = [_attribute(attribute, case) for attribute in definition.attributes]
    reals = sum(attribute.kind == "double" for attribute in attributes)
    if reals > _MAX_REALS:
        raise MisuseError(f"expected at most {_MAX_REALS} real attributes, the definition has {reals}")
    return (
        *_tensor_arguments(definition.inputs, case.inputs, "in"),
        *attributes,
        *_tensor_arguments(definition.outputs, case.outputs, "out"),
    )


def declared_kinds(header: str, function: str) -> list[str] | None:
    """Return the kinds of parameters that a header declares for a call; ``None`` without a declaration."""
    found = re.search(rf"\b{re.escape(function)}GetWorkspaceSize\s*\(([^)]*)\)", header)
    if found is None:
        return None
    parameters = found.group(1).split(",")[:-_RESULTS]
    return [
        next(
            (kind for pattern, kind in _DECLARED if re.search(rf"\b{pattern}\b", parameter)),
            parameter.strip(),
        )
        for parameter in parameters
    ]


def fitted(
    arguments: Sequence[Argument], kinds: Sequence[str], inputs: Mapping[str, Path]
) -> tuple[Argument, ...] | str:
    """Return the arguments as a header declares them, or a message if they do not fit.

    Inputs whose values the tiling function may read are declared as arrays of integers.

    Args:
        arguments: arguments according to the definition.
        kinds: kinds according to the header.
        inputs: files of the inputs, by their names in the arguments.
    """
    if len(arguments) != len(kinds):
        return f"the interface has {len(kinds)} parameters, the operator's definition {len(arguments)}"
    result = []
    for argument, kind in zip(arguments, kinds, strict=True):
        if kind == argument.kind or argument.kind == "absent":
            result.append(argument)
        elif kind == "int64s" and argument.kind == "tensor" and argument.tensors[0].role == "in":
            result.append(_as_integers(argument, inputs[argument.tensors[0].file]))
        else:
            return f"{argument.name} is declared as {kind}, the operator's definition has {argument.kind}"
    return tuple(result)


def _as_integers(argument: Argument, file: Path) -> Argument:
    values = np.fromfile(file, dtype=argument.tensors[0].dtype.value)
    return replace(argument, kind="int64s", tensors=(), value=_counted(str(int(value)) for value in values))


def _tensor_arguments(
    parameters: Sequence[ParameterDef], tensors: Sequence[TensorSpec], role: str
) -> list[Argument]:
    by_name = {tensor.name: (index, tensor) for index, tensor in enumerate(tensors)}
    unknown = sorted(set(by_name) - {parameter.name for parameter in parameters})
    if unknown:
        raise MisuseError(f"the case has {', '.join(unknown)}, which the definition does not")
    return [_tensor_argument(parameter, by_name.get(parameter.name), role) for parameter in parameters]


def _tensor_argument(parameter: ParameterDef, found: tuple[int, TensorSpec] | None, role: str) -> Argument:
    if found is None or found[1].optional_absent:
        if not parameter.optional:
            raise MisuseError(f"the case lacks {parameter.name}, which the definition requires")
        return Argument(parameter.name, "absent")
    index, tensor = found
    members = tuple(
        TensorArgument(role, tensor.name, tensor.dtype, shape, f"{role}-{index}-{item}.bin")
        for item, shape in enumerate(tensor.shapes)
    )
    return Argument(parameter.name, "list" if parameter.dynamic else "tensor", members)


def _attribute(attribute: AttributeDef, case: Case) -> Argument:
    kind = _ATTRIBUTE_KINDS.get(attribute.type)
    if kind is None:
        raise MisuseError(
            f"attribute {attribute.name} of type {attribute.type or 'unknown'} cannot be passed"
        )
    value = case.attributes.get(attribute.name)
    try:
        texts = _literals(attribute.default) if value is None else _values(value)
        written = [_WRITERS[kind](text) for text in texts]
    except ValueError as error:
        raise MisuseError(
            f"attribute {attribute.name}: {error}; give its value in the case (op.toml, attributes)"
        ) from error
    if kind in ("int64s", "floats", "bools"):
        return Argument(attribute.name, kind, value=_counted(written))
    if len(written) != 1:
        raise MisuseError(f"attribute {attribute.name}: expected one value, got {len(written)}")
    return Argument(attribute.name, kind, value=written[0])


def _values(value: object) -> list[str]:
    members = value if isinstance(value, (list, tuple)) else (value,)
    return [member if isinstance(member, str) else repr(member) for member in members]


def _literals(default: str) -> list[str]:
    """Return the elements of a C++ literal: a number, ``true``, a string, or a list of them in braces."""
    if not default:
        raise ValueError("it has no default")
    members = default.strip("{} ").split(",") if default.startswith("{") else [default]
    texts = [member.strip() for member in members]
    return [text[1:-1] if text.startswith('"') else text for text in texts if text]


def _integer(text: str) -> str:
    return str(int(_SUFFIX.sub("", text), 0))


def _real(text: str) -> str:
    return repr(float(_SUFFIX.sub("", text)))


def _truth(text: str) -> str:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"expected true or false, got {text!r}")
    return str(int(text.lower() == "true"))


def _hexadecimal(text: str) -> str:
    return "x" + text.encode("utf-8").hex()


_WRITERS: Mapping[str, Callable[[str], str]] = {
    "int64": _integer,
    "int64s": _integer,
    "double": _real,
    "floats": _real,
    "bool": _truth,
    "bools": _truth,
    "string": _hexadecimal,
}


def _counted(words: Iterable[str]) -> str:
    listed = list(words)
    return " ".join([str(len(listed)), *listed])


def unsupported_reason(spec: OpSpec) -> str | None:
    """Return why an operator cannot be called, or ``None``."""
    try:
        definition = interface_of(spec)
        for case in spec.cases:
            arguments_of(definition, case)
    except (MisuseError, OperatorFormatError) as error:
        return str(error)
    return None
