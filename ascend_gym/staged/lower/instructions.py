"""Statements of stages: copies, instructions and single elements in C++."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ascend_gym.staged.lower.align import copy_lines
from ascend_gym.staged.lower.context import Context
from ascend_gym.staged.operations import OPERATIONS, WHOLE_BYTES
from ascend_gym.staged.syntax import Op, Stmt, Transfer, View, Write

LOCAL = "Local"
"""What follows a buffer's name in the name of its tensor."""


def inside(context: Context, statement: Stmt) -> list[str]:
    """Return the lines of a statement that stands in stages alone."""
    if isinstance(statement, Transfer):
        lines = copy_lines(context, statement, _view(context, statement.local))
        return lines if len(lines) == 1 else ["{", *inner(lines), "}"]
    if isinstance(statement, Write):
        element = context.element(statement.buffer)
        value = f"static_cast<{element}>({context.expression(statement.value)})"
        return [f"{statement.buffer}{LOCAL}.SetValue({context.expression(statement.index)}, {value});"]
    assert isinstance(statement, Op)
    return _op(context, statement)


def inner(lines: Sequence[str]) -> list[str]:
    """Return lines one level further in."""
    return [f"    {line}" for line in lines]


def _view(context: Context, view: View) -> str:
    name = f"{view.buffer}{LOCAL}"
    return name if view.offset is None else f"{name}[{context.expression(view.offset)}]"


def _op(context: Context, op: Op) -> list[str]:
    operation, element = OPERATIONS[op.name], context.element(op.dst.buffer)
    count = context.expression(op.count)
    operands = [_operand(context, op, each, element) for each in op.operands]
    if op.name == "cast":
        return _cast(context, op, operands[0], element, count)
    dst = _view(context, op.dst)
    if operation.unit > 1:
        return [operation.call.format(*operands, dst=dst, n=count) + ";"]
    if operation.reduces and element == "float":
        kind = op.name.removeprefix("reduce_").capitalize()
        return [f"Reduce{kind}Long({dst}, {operands[0]}, {operands[1]}, {count});"]
    whole = ""
    if operation.bits:
        lanes = WHOLE_BYTES // (4 if _first_element(context, op) == "float" else 2)
        whole = f"AlignUp({count}, {lanes})"
    arguments = {"dst": dst, "n": count, "type": element, "whole": whole}
    call = operation.call.format(*operands, **arguments).replace("CMPMODE", "AscendC::CMPMODE")
    return [f"AscendC::{call.replace('SELMODE', 'AscendC::SELMODE')};"]


def _first_element(context: Context, op: Op) -> str:
    source = op.operands[0]
    assert isinstance(source, View)
    return context.element(source.buffer)


def _operand(context: Context, op: Op, operand: View | ast.expr, element: str) -> str:
    if isinstance(operand, View):
        return _view(context, operand)
    text = context.expression(operand)
    if op.name == "gather" or OPERATIONS[op.name].unit > 1:
        return text
    if OPERATIONS[op.name].bits:
        element = _first_element(context, op)
    plain = element == "float" and context.is_float(operand)
    return text if plain else f"static_cast<{element}>({text})"


def _cast(context: Context, op: Op, source: str, element: str, count: str) -> list[str]:
    other, dst = _first_element(context, op), _view(context, op.dst)
    widening = (other, element) in {("half", "float"), ("uint8_t", "half"), ("T", "float")}
    mode = "CAST_NONE" if widening else "CAST_TRUNC" if element == "int32_t" else "CAST_RINT"
    call = f"AscendC::Cast({dst}, {source}, AscendC::RoundMode::{mode}, {count});"
    if "T" not in (element, other):
        return [call]
    same = f"AscendC::Adds({dst}, {source}, static_cast<{element}>(0), {count});"
    return ["if constexpr (std::is_same_v<T, float>) {", f"    {same}", "} else {", f"    {call}", "}"]
