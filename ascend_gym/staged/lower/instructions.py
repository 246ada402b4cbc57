"""Statements of stages: copies, instructions and single elements in C++.

Pass 4, align, decides how copies are made: of whole blocks where that is certain, padded otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ascend_gym.staged.lower.context import CPP_TYPES, Context
from ascend_gym.staged.operations import OPERATIONS, WHOLE_BYTES
from ascend_gym.staged.syntax import BLOCK_BYTES, GENERIC, SIZES_BYTES, BufferView, Op, Stmt, Transfer, Write

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


def _view(context: Context, view: BufferView) -> str:
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
    assert isinstance(source, BufferView)
    return context.element(source.buffer)


def _operand(context: Context, op: Op, operand: BufferView | ast.expr, element: str) -> str:
    if isinstance(operand, BufferView):
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


def copy_lines(context: Context, transfer: Transfer, local: str) -> list[str]:
    """Return the statements that make a copy.

    Args:
        context: the program.
        transfer: the copy.
        local: the C++ expression of the buffer side.
    """
    tensor = context.program.tensor(transfer.tensor)
    far = f"{tensor.name}Gm[{context.expression(transfer.at)}]"
    count = context.expression(transfer.count)
    sides = f"{far}, {local}" if transfer.stores else f"{local}, {far}"
    if _is_aligned(transfer, tensor.dtype) or (not context.padded and transfer.rows is None):
        return [f"AscendC::DataCopy({sides}, {count});"]
    if not context.padded:
        return _whole_rows(context, transfer, sides, CPP_TYPES[tensor.dtype])
    element = CPP_TYPES[tensor.dtype]
    rows = "1" if transfer.rows is None else f"static_cast<uint16_t>({context.expression(transfer.rows)})"
    length = f"static_cast<uint32_t>(({count}) * sizeof({element}))"
    gap = "0"
    if transfer.pitch is not None:
        gap = f"static_cast<uint32_t>(({context.expression(transfer.pitch)} - ({count})) * sizeof({element}))"
    near = "0"
    block = f"{BLOCK_BYTES} / static_cast<int64_t>(sizeof({element}))"
    if transfer.room is not None:
        room = context.expression(transfer.room)
        near = f"static_cast<uint32_t>((({room}) - AlignUp({count}, {block})) / ({block}))"
    gaps = f"{near}, {gap}" if transfer.stores else f"{gap}, {near}"
    lines = [f"const AscendC::DataCopyExtParams copyParams{{{rows}, {length}, {gaps}, 0}};"]
    if transfer.stores:
        return [*lines, f"AscendC::DataCopyPad({sides}, copyParams);"]
    filling = "false, 0, 0, 0"
    if transfer.pad is not None:
        missing = f"static_cast<uint8_t>(AlignUp({count}, {block}) - ({count}))"
        filling = f"true, 0, {missing}, static_cast<{element}>({context.expression(transfer.pad)})"
    pads = f"const AscendC::DataCopyPadExtParams<{element}> padParams{{{filling}}};"
    return [*lines, pads, f"AscendC::DataCopyPad({sides}, copyParams, padParams);"]


def _whole_rows(context: Context, transfer: Transfer, sides: str, element: str) -> list[str]:
    """Return a copy of rows that takes them for whole blocks: what there is before this pass."""
    assert transfer.rows is not None
    assert transfer.pitch is not None
    rows, count = context.expression(transfer.rows), context.expression(transfer.count)
    block = f"{BLOCK_BYTES} / static_cast<int64_t>(sizeof({element}))"
    far = f"({context.expression(transfer.pitch)} - ({count})) / ({block})"
    near = "0" if transfer.room is None else f"({context.expression(transfer.room)} - ({count})) / ({block})"
    numbers = [rows, f"({count}) / ({block})", *((near, far) if transfer.stores else (far, near))]
    fields = ", ".join(f"static_cast<uint16_t>({each})" for each in numbers)
    return [
        f"const AscendC::DataCopyParams copyParams{{{fields}}};",
        f"AscendC::DataCopy({sides}, copyParams);",
    ]


def _is_aligned(transfer: Transfer, dtype: str) -> bool:
    """Say whether a copy certainly moves whole blocks from and to a boundary."""
    size_bytes = 2 if dtype == GENERIC else SIZES_BYTES[dtype]
    block = BLOCK_BYTES // size_bytes
    aligned = all(factor_of(each) % block == 0 for each in (transfer.at, transfer.count))
    return transfer.rows is None and aligned


def factor_of(node: ast.expr) -> int:
    """Return a number that certainly divides a whole expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return abs(node.value) or 1 << 30
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return factor_of(node.left) * factor_of(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        left, right = factor_of(node.left), factor_of(node.right)
        while right:
            left, right = right, left % right
        return left
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "align":
        return factor_of(node.args[1])
    return 1
