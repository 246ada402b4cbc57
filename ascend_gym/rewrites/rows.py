"""Copies of many rows: one strided instruction in place of a loop."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ascend_gym.rewrites.copy_parameters import copy_fields, fixed_values, listed
from ascend_gym.rewrites.loop_headers import CountingLoop, counting_loops, names_in, with_index
from ascend_gym.rewrites.rule import Choice, Effect, Family, File, Pipe, Rule, Side, Site, View, rule
from ascend_gym.rewrites.statements import declaration_of
from ascend_gym.rewrites.syntax import Call

_BLOCK_BYTES = 32
_PADDED_FIELDS = 5
_PLAIN_ARITY = 3
_INTO_UB_ARITY = 4
_OFFSET_AND_COPY = 2
_ONE = re.compile(r"\(?(?:(?:static_cast<\w+>|\(\w+\)|\w+)\()?1[uU]?\)*")
_GLOBAL = re.compile(r"gm|global", re.IGNORECASE)

_ROWS_AT_ONCE = Effect(
    (Pipe.MTE2, Pipe.MTE3, Pipe.SCALAR), "one instruction for all rows: latency and issue paid once"
)


@rule(Family.DATA_MOVEMENT, Side.KERNEL, _ROWS_AT_ONCE, inverse="row_copies")
def strided_copy(view: View) -> Iterator[Site]:
    """A loop from 0 in steps of 1 only copies one row between GM and UB per iteration.

    It may compute an offset first. The addresses in GM and UB must advance evenly. Assumption: there are
    1 to 4095 rows, which do not overlap and begin at multiples of 32 bytes in UB.
    """
    for file in view.kernel:
        for loop in counting_loops(file):
            text = _strided(loop)
            if text is not None:
                edit = file.replaced(loop.node, text)
                yield Site(loop.label(), (Choice("all rows by one copy", (edit,)),))


@rule(Family.DATA_MOVEMENT, Side.KERNEL, _ROWS_AT_ONCE)
def row_copies(view: View) -> Iterator[Site]:
    """``DataCopyPad`` with DataCopyExtParams is a statement, and is not known to copy a single row.

    A loop copies row by row instead.
    """
    for file in view.kernel:
        for call in file.source.calls:
            if call.name == "DataCopyPad" and call.statement is not None:
                yield from _row_by_row(file, call)


RULES: tuple[Rule, ...] = (strided_copy,)
REWINDS: tuple[Rule, ...] = (row_copies,)


@dataclass(frozen=True)
class _Operand:
    """A tensor that advances evenly: ``tensor[offset + row * stride]``, in elements."""

    tensor: str
    offset: str
    stride: str

    @property
    def element_bytes(self) -> str:
        """Size of an element."""
        return f"sizeof({self.tensor}.GetValue(0))"

    @property
    def step_bytes(self) -> str:
        """Bytes from the start of a row to that of the next one."""
        return _product(self.stride, self.element_bytes)

    @property
    def text(self) -> str:
        """The first row."""
        return self.tensor if self.offset == "0" else f"{self.tensor}[{self.offset}]"


@dataclass(frozen=True)
class _RowCopy:
    """The copy of one row: its length in bytes, whether it goes into UB, and its padding argument."""

    call: Call
    target: _Operand
    source: _Operand
    length: str
    into_ub: bool
    padding: str


def _strided(loop: CountingLoop) -> str | None:
    """Return the single copy that replaces a loop."""
    row = _row_copy(loop)
    if row is None:
        return None
    in_gm, in_ub = (row.source, row.target) if row.into_ub else (row.target, row.source)
    length = row.length
    gap_in_gm = f"static_cast<uint32_t>({in_gm.step_bytes} - {length})"
    ub_length = f"({length} + {_BLOCK_BYTES - 1}) / {_BLOCK_BYTES} * {_BLOCK_BYTES}"
    gap_in_ub = f"static_cast<uint32_t>(({in_ub.step_bytes} - {ub_length}) / {_BLOCK_BYTES})"
    gaps = (gap_in_gm, gap_in_ub) if row.into_ub else (gap_in_ub, gap_in_gm)
    count = f"static_cast<uint16_t>({loop.bound_text})"
    parameters = row.call.named("DataCopyExtParams")
    listed_fields = ", ".join((count, f"static_cast<uint32_t>({length})", *gaps, "0"))
    arguments = f"{row.target.text}, {row.source.text}, {parameters}({listed_fields}){row.padding}"
    return f"{row.call.named('DataCopyPad')}({arguments});{_last_offset(loop)}"


def _last_offset(loop: CountingLoop) -> str:
    """Return the statement that sets an offset that outlives the loop to its last value."""
    name, value = _computed_offset(loop)
    if value is None or loop.steps[0].type == "declaration":
        return ""
    last = with_index(loop.file.source.text_of(value), loop.index, f"({loop.bound_text} - 1)")
    return f"\n{loop.file.source.indent_of(loop.node)}{name} = {last};"


def _computed_offset(loop: CountingLoop) -> tuple[str, Node | None]:
    """Return name and value of the offset that the first of two statements sets; no value without one."""
    first = loop.steps[0].named_children[-1] if len(loop.steps) == _OFFSET_AND_COPY else None
    left = first.child_by_field_name("declarator") or first.child_by_field_name("left") if first else None
    right = first.child_by_field_name("value") or first.child_by_field_name("right") if first else None
    plain = first is not None and (first.type == "init_declarator" or _operator(first) == "=")
    if left is None or right is None or not plain or left.type not in ("identifier", "field_expression"):
        return "", None
    return loop.file.source.text_of(left), right


def _row_copy(loop: CountingLoop) -> _RowCopy | None:
    steps = loop.steps
    call = next((call for call in loop.file.source.calls if steps and call.statement == steps[-1]), None)
    if call is None or loop.start != "0" or loop.step != "1":
        return None
    if len(steps) > 1 and _computed_offset(loop)[1] is None:
        return None
    if call.name not in ("DataCopy", "DataCopyPad") or len(call.arguments) < _PLAIN_ARITY:
        return None
    operands = [_operand(loop, argument) for argument in call.arguments[:2]]
    target, source = operands
    length = _length(loop.file, call)
    if target is None or source is None or length is None or "0" in (target.stride, source.stride):
        return None
    rest = {name for argument in call.arguments[2:] for name in names_in(loop.file.source.text_of(argument))}
    into_ub = _goes_into_ub(call, target, source)
    if {loop.index, _computed_offset(loop)[0].rpartition("->")[2]} & rest or into_ub is None:
        return None
    if call.name == "DataCopy":
        element = f"decltype({source.tensor}.GetValue(0))"
        padding = f", {call.named('DataCopyPadExtParams')}<{element}>(false, 0, 0, 0)" if into_ub else ""
        return _RowCopy(call, target, source, f"{_factor(length)} * {target.element_bytes}", into_ub, padding)
    padding = f", {loop.file.source.text_of(call.arguments[3])}" if into_ub else ""
    return _RowCopy(call, target, source, length, into_ub, padding)


def _goes_into_ub(call: Call, target: _Operand, source: _Operand) -> bool | None:
    """Return the direction of a copy; ``None`` if it is unknown, or not between GM and UB."""
    if call.name == "DataCopyPad":
        return len(call.arguments) == _INTO_UB_ARITY
    from_gm = _GLOBAL.search(source.tensor) is not None
    return from_gm if from_gm != (_GLOBAL.search(target.tensor) is not None) else None


def _length(file: File, call: Call) -> str | None:
    """Return the bytes of a single-row DataCopyPad, or the elements of a DataCopy; ``None`` for others."""
    parameters = call.arguments[2]
    if call.name == "DataCopy":
        plain = len(call.arguments) == _PLAIN_ARITY and listed(file, parameters) is None
        counted = plain and "param" not in call.values[2].lower()
        return file.source.text_of(parameters) if counted else None
    values, length = listed(file, parameters), ""
    if values is None and _is_extended(file, parameters):
        values, length = fixed_values(file, parameters), f"{file.source.text_of(parameters)}.blockLen"
    if values is None or len(values) != _PADDED_FIELDS or not _ONE.fullmatch(values[0].replace(" ", "")):
        return None
    return length or _factor(values[1])


def _operand(loop: CountingLoop, argument: Node) -> _Operand | None:
    text = loop.file.source.text_of
    if argument.type != "subscript_expression":
        return None
    tensor, indices = argument.child_by_field_name("argument"), argument.child_by_field_name("indices")
    inner = indices.named_children if indices is not None else []
    if tensor is None or len(inner) != 1 or loop.index in names_in(text(tensor)):
        return None
    place = _affine(loop, inner[0])
    return _Operand(text(tensor), *place) if place is not None else None


def _affine(loop: CountingLoop, node: Node) -> tuple[str, str] | None:
    """Return a and b of an expression a + index * b; ``None`` for anything else."""
    if node.type == "parenthesized_expression" and node.named_children[0].type == "binary_expression":
        return _affine(loop, node.named_children[0])
    text = loop.file.source.text_of(node)
    name, value = _computed_offset(loop)
    if value is not None and text == name and loop.steps[0].end_byte <= node.start_byte:
        return _affine(loop, value)
    if not {loop.index, name.rpartition("->")[2]} & names_in(text):
        loose = node.type != "binary_expression" or _operator(node) not in ("+", "-", "*", "/", "%")
        return (_factor(text) if loose else text), "0"
    if node.type == "identifier":
        return "0", "1"
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if node.type != "binary_expression" or left is None or right is None:
        return None
    first, second = _affine(loop, left), _affine(loop, right)
    if first is None or second is None:
        return None
    if _operator(node) == "+":
        return _sum(first[0], second[0]), _sum(first[1], second[1])
    if _operator(node) == "*" and "0" in (first[1], second[1]):
        (factor, _), varying = (first, second) if first[1] == "0" else (second, first)
        return _product(varying[0], factor), _product(varying[1], factor)
    return None


def _operator(node: Node) -> str:
    operator = node.child_by_field_name("operator")
    return operator.type if operator is not None else ""


def _sum(first: str, second: str) -> str:
    """Return the sum of two terms whose operators bind at least as tightly as addition."""
    return " + ".join(term for term in (first, second) if term != "0") or "0"


def _product(first: str, second: str) -> str:
    if "0" in (first, second):
        return "0"
    if "1" in (first, second):
        return second if first == "1" else first
    return f"{_factor(first)} * {_factor(second)}"


def _factor(text: str) -> str:
    return text if re.fullmatch(r"[\w.]+|\w+\([\w.()]*\)", text) else f"({text})"


def _row_by_row(file: File, call: Call) -> Iterator[Site]:
    """Yield the site that replaces a copy of several rows by a loop."""
    statement = call.statement if call.statement is not None else call.node
    fields = copy_fields(file, call.arguments[2]) if len(call.arguments) >= _PLAIN_ARITY else None
    if fields is None or _ONE.fullmatch(fields.count) or not _is_extended(file, call.arguments[2]):
        return
    into_ub = len(call.arguments) == _INTO_UB_ARITY
    target, source = (file.source.text_of(argument) for argument in call.arguments[:2])
    in_gm, gap_in_gm = (source, fields.source_stride) if into_ub else (target, fields.target_stride)
    in_ub, gap_in_ub = (target, fields.target_stride) if into_ub else (source, fields.source_stride)
    gm_step = f"(({fields.length} + {gap_in_gm}) / sizeof({in_gm}.GetValue(0)))"
    blocks = f"({fields.length} + {_BLOCK_BYTES - 1}) / {_BLOCK_BYTES} + {gap_in_ub}"
    ub_step = f"(({blocks}) * {_BLOCK_BYTES} / sizeof({in_ub}.GetValue(0)))"
    target_step, source_step = (ub_step, gm_step) if into_ub else (gm_step, ub_step)
    padding = f", {file.source.text_of(call.arguments[3])}" if into_ub else ""
    one = f"{call.named('DataCopyExtParams')}(1, {fields.length}, 0, 0, 0)"
    indent = file.source.indent_of(statement)
    rows = f"{target}[row * {target_step}], {source}[row * {source_step}]"
    copy = f"{call.named('DataCopyPad')}({rows}, {one}{padding});"
    text = f"for (uint32_t row = 0; row < {fields.count}; row++) {{\n{indent}    {copy}\n{indent}}}"
    edit = file.replaced(statement, text)
    yield Site(
        file.label(statement.start_byte, f"{fields.count} rows"),
        (Choice("row by row", (edit,), forward=False),),
    )


def _is_extended(file: File, parameters: Node) -> bool:
    """Return whether copy parameters are known to be DataCopyExtParams."""
    values = listed(file, parameters)
    if values is not None:
        return len(values) == _PADDED_FIELDS
    declared = declaration_of(file.source, file.source.text_of(parameters), parameters)
    return declared is not None and declared.type_text.endswith("DataCopyExtParams")
