"""Pass 4, align: copies of whole blocks where that is certain, padded copies otherwise."""

from __future__ import annotations

import ast

from ascend_gym.staged.lower.context import CPP_TYPES, Context
from ascend_gym.staged.syntax import BLOCK_BYTES, GENERIC, SIZES_BYTES, Transfer


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
