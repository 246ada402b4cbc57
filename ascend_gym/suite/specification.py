"""``op.toml`` of an operator without sources: symbolic shapes, the sizes of each case, framework calls.

It says ``initial = "none"`` in its ``[operator]`` table. Shapes are lists of whole numbers and expressions
over the sizes and attributes of a case, such as ``"(width + 2 * padding - kernel) // stride + 1"``. A
framework call is a line such as ``"abs: x -> size(rows, columns)"``: what it reads, what it writes, and the
shape of what is neither input nor output where that is written first.
"""

from __future__ import annotations

import ast
import math
import operator as op
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import (
    AttributeValue,
    Case,
    Domain,
    DType,
    FrameworkCall,
    OpSpec,
    TensorSpec,
    Tolerance,
    ValueRange,
)
from ascend_gym.core.toml_file import explained, read_toml
from ascend_gym.suite.domain import check_domain
from ascend_gym.suite.skeleton import interface_from, skeleton

_TEMPORARY = re.compile(r"(\w+)(?:\(([^()]*)\))?")
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: op.add,
    ast.Sub: op.sub,
    ast.Mult: op.mul,
    ast.FloorDiv: op.floordiv,
    ast.Mod: op.mod,
}

Extent = int | str


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Operator(_Section):
    type: str
    level: int = Field(ge=1, le=3)
    category: str
    description: str
    initial: Literal["none"]
    reads_all_inputs: bool = True
    latency_depends_on_values: bool = False


class _Tensor(_Section):
    name: str
    shape: tuple[Extent, ...]
    dtype: DType | None = None
    values: ValueRange = ValueRange()


class _CaseEntry(_Section):
    id: str
    sizes: dict[str, int] = {}
    attributes: dict[str, AttributeValue] = {}
    dtype: DType = DType.FLOAT32
    hidden: bool = False


class Specification(_Section):
    """The content of the file.

    Attributes:
        operator: what it is.
        attributes: attributes of every case that does not say otherwise.
        tolerance: by type of output.
        input: inputs in order; ``dtype`` where it is not that of the case.
        output: outputs in order.
        eager: framework calls, one a line.
        case: public and hidden cases.
        domain: see ``Domain``.
    """

    operator: _Operator
    attributes: dict[str, AttributeValue] = {}
    tolerance: dict[DType, Tolerance]
    input: tuple[_Tensor, ...] = Field(min_length=1)
    output: tuple[_Tensor, ...] = Field(min_length=1)
    eager: tuple[str, ...] = Field(min_length=1)
    case: tuple[_CaseEntry, ...] = Field(min_length=1)
    domain: Domain | None = None

    def cases(self, *, hidden: bool) -> tuple[Case, ...]:
        """Return the hidden cases, or the public ones.

        Raises:
            ValueError: a shape or a framework call does not make sense.
        """
        return tuple(self._case(entry) for entry in self.case if entry.hidden == hidden)

    def _case(self, entry: _CaseEntry) -> Case:
        attributes = {**self.attributes, **entry.attributes}
        whole = {name: value for name, value in attributes.items() if isinstance(value, int)}
        names = {**entry.sizes, **whole}
        inputs = tuple(_tensor(each, entry, names, values=each.values) for each in self.input)
        outputs = tuple(_tensor(each, entry, names) for each in self.output)
        case = Case(
            case_id=entry.id, inputs=inputs, outputs=outputs, attributes=attributes, tolerance=self.tolerance
        )
        return case.model_copy(update={"eager": _framework_calls(self.eager, case, names, entry.dtype)})


def has_no_sources(manifest: Path) -> bool:
    """Say whether an ``op.toml`` is that of an operator without sources."""
    try:
        section = read_toml(manifest).get("operator", {})
    except (OSError, ValueError):
        return False
    return isinstance(section, dict) and section.get("initial") == "none"


def read_specification(folder: Path, op_id: str, name: str, digest: str) -> OpSpec:
    """Read an operator without sources; its baseline is a skeleton.

    Args:
        folder: has ``op.toml`` and ``reference.py``.
        op_id: ``suite/name``.
        name: name without the suite.
        digest: of the folder.

    Raises:
        OperatorFormatError: the file cannot be understood; the message names it and the key.
    """
    path = folder / "op.toml"
    try:
        text = path.read_text(encoding="utf-8")
        specification = Specification.model_validate(read_toml(path))
        public, hidden = specification.cases(hidden=False), specification.cases(hidden=True)
        check_domain(specification.domain or Domain(), (*public, *hidden))
        reference = (folder / "reference.py").read_text(encoding="utf-8")
    except ValidationError as error:
        raise OperatorFormatError(explained(path, text, error, Specification)) from error
    except (OSError, ValueError) as error:
        raise OperatorFormatError(f"{path}: {error}") from error
    described = specification.operator
    interface = interface_from(described.type, name, (*public, *hidden))
    return OpSpec(
        op_id=op_id,
        op_type=described.type,
        folder=str(folder),
        level=described.level,
        category=described.category,
        description=described.description,
        auto_sync=True,
        reads_all_inputs=described.reads_all_inputs,
        latency_depends_on_values=described.latency_depends_on_values,
        cases=public,
        hidden_cases=hidden,
        baseline=skeleton(interface, _told(specification, reference)),
        folder_digest=digest,
        domain=specification.domain,
    )


def _told(specification: Specification, reference: str) -> str:
    """Return the specification as text: tensors with symbolic shapes, and the reference."""
    lines = [specification.operator.description, ""]
    for kind, tensors in (("input", specification.input), ("output", specification.output)):
        for each in tensors:
            dtype = each.dtype.value if each.dtype else "of the case's type"
            lines.append(f"{kind} {each.name}[{', '.join(map(str, each.shape))}], {dtype}")
    lines += [
        f"attribute {name}, such as {value}" for name, value in sorted(specification.attributes.items())
    ]
    return "\n".join([*lines, "", "Reference in numpy:", "", reference])


def extent(expression: Extent, names: Mapping[str, int]) -> int:
    """Return the value of an expression over names: + - * // % and parentheses.

    Raises:
        ValueError: it is something else, or has no value that is a size.
    """
    if isinstance(expression, int):
        return expression
    try:
        value = _value(ast.parse(expression, mode="eval").body, names)
    except (SyntaxError, ZeroDivisionError) as error:
        raise ValueError(f"{expression!r} is not an expression over {', '.join(names)}: {error}") from error
    if value < 0:
        raise ValueError(f"{expression!r} is {value}")
    return value


def _value(node: ast.expr, names: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise ValueError(f"{node.id!r} is neither a size nor a whole attribute of the case")
        return names[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left, names), _value(node.right, names))
    raise ValueError(f"{ast.unparse(node)} is not part of expressions for shapes (+ - * // %)")


def _tensor(tensor: _Tensor, entry: _CaseEntry, names: Mapping[str, int], **fields: Any) -> TensorSpec:
    shape = tuple(extent(each, names) for each in tensor.shape)
    return TensorSpec(name=tensor.name, dtype=tensor.dtype or entry.dtype, shapes=(shape,), **fields)


def _framework_calls(
    lines: tuple[str, ...], case: Case, names: Mapping[str, int], dtype: DType
) -> tuple[FrameworkCall, ...]:
    sizes = {tensor.name: tensor.size_bytes for tensor in (*case.inputs, *case.outputs)}
    fresh = {tensor.name for tensor in case.inputs}
    calls = []
    for line in lines:
        match = re.fullmatch(r"(\w+): (.+?) -> (.+)", line)
        if match is None:
            raise ValueError(f"eager: {line!r} is not of the form 'call: inputs -> outputs'")
        read = [_sized(each, sizes, names, dtype) for each in _parts(match[2])]
        written = [_sized(each, sizes, names, dtype) for each in _parts(match[3])]
        calls.append(
            FrameworkCall(
                name=match[1],
                fresh_bytes=sum(sizes[each] for each in set(read) & fresh),
                read_bytes=sum(sizes[each] for each in read),
                written_bytes=sum(sizes[each] for each in written),
            )
        )
        fresh -= set(read)
    return tuple(calls)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in re.split(r",(?![^()]*\))", text)]


def _sized(part: str, sizes: dict[str, int], names: Mapping[str, int], dtype: DType) -> str:
    """Return the name of a tensor of a call; a new one is told with its shape."""
    match = _TEMPORARY.fullmatch(part)
    if match is None or (match[1] not in sizes and match[2] is None):
        raise ValueError(f"eager: {part!r} is no input or output, and no new tensor with its shape")
    if match[2] is not None:
        extents = [extent(each.strip(), names) for each in match[2].split(",") if each.strip()]
        sizes[match[1]] = dtype.size_bytes(math.prod(extents))
    return match[1]
