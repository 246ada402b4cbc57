"""Rules about copies between global memory and UB."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

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
from ascend_gym.rewrites.statements import argument_of, declaration_of, mentions
from ascend_gym.rewrites.syntax import Call, Edit, ancestor

_BLOCK_BYTES = 32
_COPY_FIELDS = 4
_MAX_STRIDE = 2**16 - 1  # blocks, of DataCopy
_ARGUMENTS_INTO_UB = 4


@rule(
    Family.DATA_MOVEMENT,
    Side.KERNEL,
    Effect((Pipe.MTE2, Pipe.MTE3), "aligned copies take the plain path, without the cost of padding"),
)
def aligned_copy(view: View) -> Iterator[Site]:
    """``DataCopyPad`` between GM and UB stands as a statement, with named or listed parameters.

    Where length and stride in GM are multiples of 32 bytes, the stride fits its field and nothing is padded,
    DataCopy does the same; the rewritten code decides at run time.
    """
    for file in view.kernel:
        sites = [site for call in file.source.calls for site in _aligned(file, call)]
        yield from one_and_all(sites, f"copies of {file.path}")


RULES: tuple[Rule, ...] = (aligned_copy,)
REWINDS: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class _Copy:
    """Fields of a DataCopyPad as expressions: length and GM stride in bytes, the other stride in blocks."""

    count: str
    length: str
    source_stride: str
    target_stride: str


def _aligned(file: File, call: Call) -> Iterator[Site]:
    statement = call.statement
    if call.name != "DataCopyPad" or statement is None or len(call.arguments) not in (3, 4):
        return
    into_ub = len(call.arguments) == _ARGUMENTS_INTO_UB
    copy = _copy_fields(file, call.arguments[2])
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
    edit = file.edit(Edit(statement.start_byte, statement.end_byte, text))
    yield Site(file.label(statement.start_byte, "DataCopyPad"), (Choice("plain copy when aligned", (edit,)),))


def _plain_copy(file: File, call: Call, copy: _Copy, into_ub: bool) -> str:
    """Return the DataCopy statement with everything in blocks of 32 bytes."""
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
    """Say whether the call already stands under a decision about alignment."""
    branch = ancestor(call.node, "if_statement")
    condition = branch.child_by_field_name("condition") if branch is not None else None
    return condition is not None and re.search(r"%|align", file.source.text_of(condition), re.I) is not None


def _copy_fields(file: File, parameters: Node) -> _Copy | None:
    """Return the fields of named or listed copy parameters; literals are seen through a name."""
    name = file.source.text_of(parameters)
    values = _listed(file, parameters)
    if values is not None:
        if len(values) < _COPY_FIELDS:
            return None
        return _Copy(
            *(value if re.fullmatch(r"\w+", value) else f"({value})" for value in values[:_COPY_FIELDS])
        )
    if parameters.type not in ("identifier", "field_expression"):
        return None
    known = _fixed_values(file, parameters)
    names = ("blockCount", "blockLen", "srcStride", "dstStride")
    fields = [f"{name}.{field}" for field in names]
    literals = [*known[:_COPY_FIELDS], *[""] * _COPY_FIELDS]
    return _Copy(
        *(literal if literal.isdigit() else field for literal, field in zip(literals, fields, strict=False))
    )


def _unpadded_condition(file: File, padding: Node) -> str | None:
    """Return the condition under which nothing is padded: empty if always, ``None`` if unknown."""
    values = _listed(file, padding)
    if values is None and padding.type in ("identifier", "field_expression"):
        name = file.source.text_of(padding)
        known = _fixed_values(file, padding)
        return "" if known[1:3] == ["0", "0"] else f"{name}.leftPadding == 0 && {name}.rightPadding == 0"
    return "" if values is not None and (not values or values[1:3] == ["0", "0"]) else None


def _listed(file: File, node: Node) -> list[str] | None:
    """Return the elements of ``{a, b}`` or ``Type{a, b}``; ``None`` for anything else."""
    if node.type == "compound_literal_expression":
        node = node.named_children[-1]
    if node.type != "initializer_list":
        return None
    return [file.source.text_of(child) for child in node.named_children if child.type != "comment"]


def _fixed_values(file: File, variable: Node) -> list[str]:
    """Return what a variable is initialised with, if nothing can change it afterwards."""
    source, name = file.source, file.source.text_of(variable)
    declared = declaration_of(source, name, variable)
    if declared is None:
        return []
    uses = mentions(source, name, declared.scope)
    later = [use for use in uses if use.start_byte >= declared.value.end_byte]
    return (_listed(file, declared.value) or []) if all(_only_reads(file, use) for use in later) else []


def _only_reads(file: File, use: Node) -> bool:
    """Say whether a mention is the argument of a DataCopyPad or reads a field."""
    call = argument_of(file.source, use)
    if call is not None:
        return call.name == "DataCopyPad"
    field = use.parent
    around = field.parent if field is not None and field.type == "field_expression" else None
    if field is None or around is None:
        return False
    if around.type == "init_declarator":
        declarator = around.child_by_field_name("declarator")
        return declarator is not None and declarator.type == "identifier"
    return around.type == "binary_expression" or (
        around.type == "assignment_expression" and around.child_by_field_name("right") == field
    )
