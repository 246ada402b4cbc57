"""Reads operator definitions (``class X : public OpDef``) out of C++ text, by pattern.

Only what a loader needs: the type, and name, kind and dtype columns of inputs, attributes and outputs.
Definitions that a macro writes are expanded with the C preprocessor first.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from ascend_gym.core.cpp_text import without_comments
from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import DType
from ascend_gym.core.wheel import compiler_program

# suffixes of ge::DT_* and ACL_*
DTYPE_BY_SUFFIX = {
    "FLOAT16": DType.FLOAT16,
    "FLOAT": DType.FLOAT32,
    "BF16": DType.BFLOAT16,
    "INT4": DType.INT4,
    "INT8": DType.INT8,
    "UINT8": DType.UINT8,
    "INT16": DType.INT16,
    "UINT16": DType.UINT16,
    "INT32": DType.INT32,
    "UINT32": DType.UINT32,
    "INT64": DType.INT64,
    "UINT64": DType.UINT64,
    "BOOL": DType.BOOL,
    "DOUBLE": DType.FLOAT64,
    "COMPLEX64": DType.COMPLEX64,
}
PREPROCESS_TIMEOUT_S = 30.0

MAX_PARAMETERS = 256
_CLASS = re.compile(r"class\s+(\w+)\s*:\s*public\s+(?:ops::)?OpDef\b")
_MEMBER = re.compile(r'(?:this->)?\b(Input|Output|Attr)\(\s*"(\w+)"\s*\)([^;]*)(?:;|\Z)')
_DTYPES = re.compile(r"\.DataType\(\s*\{([^}]*)(?:\}|\Z)")
_NAMED_DTYPES = re.compile(r"\.DataType\(\s*(\w+)\s*\)")
_ATTRIBUTE_TYPE = re.compile(r"\.((?:ListList|List)?(?:Int|Float|Bool|String))\(([^()]*)")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[^\n]*$", re.MULTILINE)


@dataclass(frozen=True)
class ParameterDef:
    """An input or output: ``dtypes`` has one entry per supported combination; ``None`` where unsupported."""

    name: str
    dtypes: tuple[DType | None, ...]
    optional: bool
    dynamic: bool


@dataclass(frozen=True)
class AttributeDef:
    """An attribute: its type as in the definition (``Int``, ``ListFloat``), ``""`` when it names none.

    ``default`` is the C++ text of its default, ``""`` when there is none.
    """

    name: str
    type: str
    required: bool
    default: str = ""


@dataclass(frozen=True)
class OperatorDef:
    """An operator definition: its type, parameters and attributes, in order."""

    op_type: str
    inputs: tuple[ParameterDef, ...]
    outputs: tuple[ParameterDef, ...]
    attributes: tuple[AttributeDef, ...]


def defines_operator(text: str) -> bool:
    """Say whether ``text`` spells out an operator definition."""
    return _CLASS.search(without_comments(text)) is not None


def expand_macros(texts: Iterable[str]) -> str:
    """Return the texts, one after the other, with their own macros expanded and no header included.

    Raises:
        InfrastructureError: the compiler's package is not installed.
        OperatorFormatError: they cannot be preprocessed.
    """
    joined = "\n".join(_INCLUDE.sub("", text) for text in texts)
    try:
        done = subprocess.run(
            [compiler_program(), "clang", "-E", "-P", "-x", "c++", "-"],
            input=joined,
            capture_output=True,
            text=True,
            timeout=PREPROCESS_TIMEOUT_S,
            check=True,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise OperatorFormatError(f"the operator definition cannot be preprocessed: {error}") from error
    return done.stdout


def read_opdef(text: str, where: str, op_type: str | None = None) -> OperatorDef:
    """Read the operator definition in ``text``.

    Args:
        text: C++ sources.
        where: names them in messages.
        op_type: which definition to take when there are several.

    Raises:
        OperatorFormatError: there is no telling which definition, or it names no parameters.
    """
    code = without_comments(text)
    found = list(_CLASS.finditer(code))
    classes = [each for each in found if each.group(1) == op_type] or found
    if len(classes) != 1:
        names = [each.group(1) for each in classes]
        raise OperatorFormatError(f"{where}: expected one 'class X : public OpDef', found {names}")
    name_of_type = str(classes[0].group(1))
    following = [each.start() for each in found if each.start() > classes[0].start()]
    body = code[classes[0].start() : following[0] if following else len(code)]
    members: dict[tuple[str, str], str] = {}
    for kind, name, chain in _MEMBER.findall(body):  # what a configuration of one chip repeats comes later
        members.setdefault((kind, name), chain)
    if len(members) > MAX_PARAMETERS:
        raise OperatorFormatError(f"{where}: {len(members)} parameters, expected at most {MAX_PARAMETERS}")
    inputs = [_parameter(name, chain, code) for (kind, name), chain in members.items() if kind == "Input"]
    outputs = [_parameter(name, chain, code) for (kind, name), chain in members.items() if kind == "Output"]
    attributes = [_attribute(name, chain) for (kind, name), chain in members.items() if kind == "Attr"]
    if not inputs and not outputs:
        raise OperatorFormatError(f"{where}: the definition of {name_of_type} names no inputs and no outputs")
    return OperatorDef(name_of_type, tuple(inputs), tuple(outputs), tuple(attributes))


def _parameter(name: str, chain: str, code: str) -> ParameterDef:
    columns = _DTYPES.search(chain) or _named_columns(chain, code)
    suffixes = re.findall(r"DT_(\w+)", columns.group(1)) if columns else []
    return ParameterDef(
        name=name,
        dtypes=tuple(DTYPE_BY_SUFFIX.get(suffix) for suffix in suffixes),
        optional="OPTIONAL" in chain,
        dynamic="DYNAMIC" in chain,
    )


def _named_columns(chain: str, code: str) -> re.Match[str] | None:
    """Return the initializer of the list that ``.DataType(name)`` refers to."""
    named = _NAMED_DTYPES.search(chain)
    return re.search(rf"\b{named.group(1)}\s*(?:=\s*)?\{{([^}}]*)(?:\}}|\Z)", code) if named else None


def _attribute(name: str, chain: str) -> AttributeDef:
    kind = _ATTRIBUTE_TYPE.search(chain)
    if kind is None:
        return AttributeDef(name, "", "REQUIRED" in chain)
    return AttributeDef(name, kind.group(1), "REQUIRED" in chain, kind.group(2).strip())
