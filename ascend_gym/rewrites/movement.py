"""Rules about copies between global memory and UB."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ascend_gym.rewrites.copy_parameters import CopyFields, copy_fields, fixed_values, listed
from ascend_gym.rewrites.rule import (
    Choice,
    Effect,
    Family,
    File,
    Pipe,
    Rule,
    Side,
    Site,
    View,
    one_and_all,
    rule,
)
from ascend_gym.rewrites.syntax import Call, ancestor, is_inside, statements_of

_BLOCK_BYTES = 32
_MAX_STRIDE = 2**16 - 1  # blocks, of DataCopy
_ARGUMENTS_INTO_UB = 4
_ALIGNMENT = re.compile("%|align", re.IGNORECASE)
_COPIES = ("DataCopy", "DataCopyPad")


_PLAIN_PATH = Effect(
    (Pipe.MTE2, Pipe.MTE3), "aligned copies take the plain path, without the cost of padding"
)


@rule(
    Family.DATA_MOVEMENT,
    Side.KERNEL,
    _PLAIN_PATH,
    inverse="padded_copy",
)
def aligned_copy(view: View) -> Iterator[Site]:
    """``DataCopyPad`` between GM and UB is a statement, with named or listed parameters.

    DataCopy does the same if length and stride in GM are multiples of 32 bytes, the stride fits its field and
    nothing is padded; the rewritten code decides at run time.
    """
    for file in view.kernel:
        sites = [site for call in file.source.calls for site in _aligned(file, call)]
        yield from one_and_all(sites, f"copies of {file.path}")


@rule(Family.DATA_MOVEMENT, Side.KERNEL, _PLAIN_PATH)
def padded_copy(view: View) -> Iterator[Site]:
    """An if statement about alignment selects one DataCopy or one DataCopyPad.

    DataCopyPad covers both.
    """
    for file in view.kernel:
        sites = [
            site for branch in file.source.nodes("if_statement") for site in _always_padded(file, branch)
        ]
        yield from one_and_all(sites, f"copies of {file.path}")


RULES: tuple[Rule, ...] = (aligned_copy,)
REWINDS: tuple[Rule, ...] = (padded_copy,)


def _aligned(file: File, call: Call) -> Iterator[Site]:
    statement = call.statement
    if call.name != "DataCopyPad" or statement is None or len(call.arguments) not in (3, 4):
        return
    into_ub = len(call.arguments) == _ARGUMENTS_INTO_UB
    copy = copy_fields(file, call.arguments[2])
    unpadded = _unpadded_condition(file, call.arguments[3]) if into_ub else ""
    if copy is None or unpadded is None or _is_guarded(file, call):
        return
    gm_stride = copy.source_stride if into_ub else copy.target_stride
    conditions = [f"{copy.length} % {_BLOCK_BYTES} == 0"]
    if gm_stride != "0":
        conditions += [f"{gm_stride} % {_BLOCK_BYTES} == 0", f"{gm_stride} / {_BLOCK_BYTES} <= {_MAX_STRIDE}"]
    condition = " && ".join([*conditions, *([unpadded] if unpadded else [])])
    indent = file.source.indent_of(statement)
    text = (
        f"if ({condition}) {{\n{indent}    {_plain_copy(file, call, copy, into_ub)}\n{indent}}} else {{\n"
        f"{indent}    {file.source.text_of(statement)}\n{indent}}}"
    )
    edit = file.replaced(statement, text)
    yield Site(file.label(statement.start_byte, "DataCopyPad"), (Choice("plain copy when aligned", (edit,)),))


def _plain_copy(file: File, call: Call, copy: CopyFields, into_ub: bool) -> str:
    """Return the DataCopy statement with all quantities in blocks of 32 bytes."""
    strides = [copy.source_stride, copy.target_stride]
    strides[0 if into_ub else 1] = _in_blocks(strides[0 if into_ub else 1])
    fields = (copy.count, _in_blocks(copy.length), *strides)
    parameters = ", ".join(
        field if field.isdigit() else f"static_cast<uint16_t>({field})" for field in fields
    )
    target, source = (file.source.text_of(argument) for argument in call.arguments[:2])
    return f"{call.named('DataCopy')}({target}, {source}, {call.named('DataCopyParams')}({parameters}));"


def _in_blocks(length_bytes: str) -> str:
    return "0" if length_bytes == "0" else f"{length_bytes} / {_BLOCK_BYTES}"


def _is_guarded(file: File, call: Call) -> bool:
    """Return whether the call is already inside a decision about alignment."""
    branch = ancestor(call.node, "if_statement")
    condition = branch.child_by_field_name("condition") if branch is not None else None
    return condition is not None and _ALIGNMENT.search(file.source.text_of(condition)) is not None


def _unpadded_condition(file: File, padding: Node) -> str | None:
    """Return the condition under which nothing is padded; empty if always, ``None`` if unknown."""
    values = listed(file, padding)
    if values is None and padding.type in ("identifier", "field_expression"):
        name = file.source.text_of(padding)
        known = fixed_values(file, padding)
        return "" if known[1:3] == ["0", "0"] else f"{name}.leftPadding == 0 && {name}.rightPadding == 0"
    return "" if values is not None and (not values or values[1:3] == ["0", "0"]) else None


def _always_padded(file: File, branch: Node) -> Iterator[Site]:
    """Yield the site that replaces a decision about alignment by its DataCopyPad."""
    condition, plain, padded = (
        branch.child_by_field_name(field) for field in ("condition", "consequence", "alternative")
    )
    if condition is None or plain is None or padded is None:
        return
    copies = [
        [call.name for call in file.source.calls if call.name in _COPIES and is_inside(call.node, side)]
        for side in (plain, padded)
    ]
    if not _ALIGNMENT.search(file.source.text_of(condition)) or copies != [["DataCopy"], ["DataCopyPad"]]:
        return
    if _only_statement(plain) is not None:
        kept = _only_statement(padded) or padded.named_children[-1]
        edit = file.replaced(branch, file.source.text_of(kept))
        label = file.label(branch.start_byte, "DataCopy when aligned")
        yield Site(label, (Choice("always DataCopyPad", (edit,), forward=False),))


def _only_statement(branch: Node) -> Node | None:
    """Return the only statement of a branch; ``None`` if there are others."""
    while branch.type in ("else_clause", "compound_statement"):
        inner = statements_of(branch)
        if len(inner) != 1:
            return None
        branch = inner[0]
    return branch if branch.type == "expression_statement" else None
