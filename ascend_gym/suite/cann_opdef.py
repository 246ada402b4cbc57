"""Reads operator definitions (``class X : public OpDef``) out of C++ text, by pattern.

Only what a loader needs: the type, and name, kind and dtype columns of inputs, attributes and outputs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import DType

# suffixes of ge::DT_* and ACL_*
DTYPE_BY_SUFFIX = {
    "FLOAT16": DType.FLOAT16,
    "FLOAT": DType.FLOAT32,
    "BF16": DType.BFLOAT16,
    "INT8": DType.INT8,
    "UINT8": DType.UINT8,
    "INT16": DType.INT16,
    "UINT16": DType.UINT16,
    "INT32": DType.INT32,
    "UINT32": DType.UINT32,
    "INT64": DType.INT64,
    "UINT64": DType.UINT64,
    "BOOL": DType.BOOL,
}

_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_CLASS = re.compile(r"class\s+(\w+)\s*:\s*public\s+(?:ops::)?OpDef\b")
_MEMBER = re.compile(r'(?:this->)?\b(Input|Output|Attr)\(\s*"(\w+)"\s*\)([^;]*);')
_DTYPES = re.compile(r"\.DataType\(\s*\{([^}]*)\}")


@dataclass(frozen=True)
class ParameterDef:
    """An input or output: ``dtypes`` has one entry per supported combination; ``None`` where unsupported."""

    name: str
    dtypes: tuple[DType | None, ...]
    optional: bool
    dynamic: bool


@dataclass(frozen=True)
class OperatorDef:
    """An operator definition: its type, parameters and attribute names, in order."""

    op_type: str
    inputs: tuple[ParameterDef, ...]
    outputs: tuple[ParameterDef, ...]
    attributes: tuple[str, ...]


def without_comments(text: str) -> str:
    """Return C++ text with comments replaced by a space; string literals are kept."""
    return _COMMENT.sub(lambda match: match.group(1) or " ", text)


def read_opdef(text: str, where: str) -> OperatorDef:
    """Read the operator definition in ``text``.

    Raises:
        OperatorFormatError: there is not exactly one definition, or it names no inputs or outputs.
    """
    code = without_comments(text)
    classes = _CLASS.findall(code)
    if len(classes) != 1:
        raise OperatorFormatError(f"{where}: expected one 'class X : public OpDef', found {classes}")
    inputs: list[ParameterDef] = []
    outputs: list[ParameterDef] = []
    attributes: list[str] = []
    for kind, name, chain in _MEMBER.findall(code[code.index(f"class {classes[0]}") :]):
        if kind == "Attr":
            attributes.append(name)
        else:
            (inputs if kind == "Input" else outputs).append(_parameter(name, chain))
    if not inputs or not outputs:
        raise OperatorFormatError(f"{where}: the definition of {classes[0]} names no inputs or no outputs")
    return OperatorDef(classes[0], tuple(inputs), tuple(outputs), tuple(attributes))


def _parameter(name: str, chain: str) -> ParameterDef:
    columns = _DTYPES.search(chain)
    suffixes = re.findall(r"DT_(\w+)", columns.group(1)) if columns else []
    return ParameterDef(
        name=name,
        dtypes=tuple(DTYPE_BY_SUFFIX.get(suffix) for suffix in suffixes),
        optional="OPTIONAL" in chain,
        dynamic="DYNAMIC" in chain,
    )
