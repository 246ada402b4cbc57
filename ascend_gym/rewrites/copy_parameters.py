"""Parameters of copies: the third argument of DataCopyPad, as a list or a variable."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from ascend_gym.rewrites.rule import File
from ascend_gym.rewrites.statements import argument_of, declaration_of, mentions

_COPY_FIELDS = 4


@dataclass(frozen=True)
class CopyFields:
    """Fields of a DataCopyPad as expressions: length and GM stride in bytes, the other stride in blocks."""

    count: str
    length: str
    source_stride: str
    target_stride: str


def copy_fields(file: File, parameters: Node) -> CopyFields | None:
    """Return the fields of named or listed copy parameters; named literals are resolved."""
    name = file.source.text_of(parameters)
    values = listed(file, parameters)
    if values is not None:
        if len(values) < _COPY_FIELDS:
            return None
        return CopyFields(
            *(value if re.fullmatch(r"\w+", value) else f"({value})" for value in values[:_COPY_FIELDS])
        )
    if parameters.type not in ("identifier", "field_expression"):
        return None
    known = fixed_values(file, parameters)
    names = ("blockCount", "blockLen", "srcStride", "dstStride")
    fields = [f"{name}.{field}" for field in names]
    literals = [*known[:_COPY_FIELDS], *[""] * _COPY_FIELDS]
    return CopyFields(
        *(literal if literal.isdigit() else field for literal, field in zip(literals, fields, strict=False))
    )


def listed(file: File, node: Node) -> list[str] | None:
    """Return the elements of ``{a, b}``, ``Type{a, b}`` or ``(a, b)``; ``None`` for anything else."""
    named = node.child_by_field_name("function")
    if node.type == "compound_literal_expression" or (
        named is not None and file.source.text_of(named).endswith("Params")
    ):
        node = node.named_children[-1]
    if node.type not in ("initializer_list", "argument_list"):
        return None
    return [file.source.text_of(child) for child in node.named_children if child.type != "comment"]


def fixed_values(file: File, variable: Node) -> list[str]:
    """Return the initialiser of a variable if nothing can change it afterwards."""
    source, name = file.source, file.source.text_of(variable)
    declared = declaration_of(source, name, variable)
    if declared is None:
        return []
    uses = mentions(source, name, declared.scope)
    later = [use for use in uses if use.start_byte >= declared.value.end_byte]
    return (listed(file, declared.value) or []) if all(_only_reads(file, use) for use in later) else []


def _only_reads(file: File, use: Node) -> bool:
    """Return whether a mention is an argument of DataCopyPad or reads a field."""
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
