"""Helpers for rules on vector arithmetic: calls for the first ``count`` elements, and pairs of them.

Forms with masks and repeats are not rewritten.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache

from tree_sitter import Node

from ascend_gym.core.calls import elementwise_calls
from ascend_gym.rewrites.rule import Choice, File, Site, View
from ascend_gym.rewrites.statements import CallPair, call_pairs, declaration_of, is_dead_after
from ascend_gym.rewrites.syntax import Call, Source, ancestor, is_inside

NUMBER = r"([+-]?(?:\d+\.?\d*|\.\d+))f?"
UNARY = elementwise_calls("unary")
WITH_SCALAR = elementwise_calls("with_scalar")
BINARY = elementwise_calls("binary")
_ARITIES = {
    "Duplicate": 3,
    "Cast": 4,
    **dict.fromkeys(UNARY, 3),
    **dict.fromkeys(WITH_SCALAR, 4),
    **dict.fromkeys(BINARY, 4),
}
_LITERAL = re.compile(rf"(?:\(\w+\))?{NUMBER}|(?:static_cast<\w+>|[A-Za-z_]\w*)\({NUMBER}\)")
_TENSOR_TYPE = re.compile(r"(?:const)?(?:AscendC::)?LocalTensor<(.+)>")
_NAME = re.compile(r"[A-Za-z_]\w*")
_TWO_TYPES = frozenset({"Axpy", "MulAddDst"})


def vector_calls(file: File) -> Iterator[Call]:
    """Yield the statements of a file that are vector calls for the first ``count`` elements."""
    yield from (call for call in file.source.calls if is_vector_call(call))


def is_vector_call(call: Call) -> bool:
    """Return whether a call is a statement and a vector instruction for the first ``count`` elements."""
    arity = _ARITIES.get(call.name)
    return arity is not None and is_counted(call, arity) and call.statement is not None


def is_counted(call: Call, arity: int) -> bool:
    """Return whether a call has ``arity`` arguments, of which the last can be a number of elements."""
    return (
        not call.is_method and len(call.arguments) == arity and call.arguments[-1].type != "initializer_list"
    )


def tensor_positions(call: Call) -> tuple[int, ...]:
    """Return the positions of a vector call's tensor arguments; the first one is written."""
    if call.name in BINARY:
        return (0, 1, 2)
    return (0,) if call.name == "Duplicate" else (0, 1)


def is_name(text: str) -> bool:
    """Return whether a text is a plain identifier."""
    return _NAME.fullmatch(text) is not None


def literal(bare: str) -> float | None:
    """Return the number in ``2``, ``2.0f``, ``(T)2``, ``T(2)`` or ``static_cast<T>(2)``; else ``None``."""
    match = _LITERAL.fullmatch(bare)
    return float(match[1] or match[2]) if match else None


def number_of(view: View, bare: str) -> float | None:
    """Return the number that a text denotes, directly or as the only kernel constant of that name."""
    if not is_name(bare):
        return literal(bare)
    values = {value for file in view.kernel for value in _constant_values(file.source, bare)}
    return literal(values.pop()) if len(values) == 1 else None


def texts_of(file: File, call: Call) -> list[str]:
    """Return the argument texts of a call as written."""
    return [file.source.text_of(argument) for argument in call.arguments]


def element_of(source: Source, name: str, use: Node) -> str:
    """Return T of the ``LocalTensor<T>`` that ``name`` means at ``use``: local, parameter or member.

    Empty if it is unknown.
    """
    local = declaration_of(source, name, use)
    if local is not None:
        return _element(local.type_text)
    function, own_class = ancestor(use, "function_definition"), ancestor(use, "class_specifier")
    elements = {
        element
        for declaration, element in _tensor_declarations(source).get(name, [])
        if is_inside(declaration, (own_class or source.root) if _is_member(declaration) else function or use)
    }
    return elements.pop() if len(elements) == 1 else ""


def pairs(view: View, first: str, seconds: tuple[str, ...]) -> Iterator[CallPair]:
    """Yield pairs of counted calls with these names that cover the same number of elements."""
    for file in view.kernel:
        for pair in call_pairs(file):
            if pair.first.name != first or pair.second.name not in seconds:
                continue
            counted = all(is_counted(call, _ARITIES[call.name]) for call in (pair.first, pair.second))
            if counted and pair.first.values[-1] == pair.second.values[-1]:
                yield pair


def fusion(pair: CallPair, name: str, arguments: list[str]) -> Iterator[Site]:
    """Yield the site that replaces both calls by one, with their explicit element type."""
    element = element_type(pair)
    if element is None:
        return
    text = f"{pair.second.named(name)}{template_of(name, element)}({', '.join(arguments)})"
    edits = tuple(pair.file.edit(edit) for edit in pair.fused(text))
    yield Site(pair.label, (Choice(text, edits),))


def template_of(name: str, element: str) -> str:
    """Return the template arguments of a call on tensors of one element type; empty if it is implicit."""
    return f"<{', '.join([element] * (2 if name in _TWO_TYPES else 1))}>" if element else ""


def element_type(pair: CallPair) -> str | None:
    """Return the explicit element type of the calls: empty if none has one, ``None`` if unclear."""
    named = {call.template[1:-1].strip() for call in (pair.first, pair.second) if call.template}
    if len(named) > 1 or any("," in element for element in named):
        return None
    return named.pop() if named else ""


def temporary_dies(pair: CallPair) -> bool:
    """Return whether the result of the first call is not used after the second."""
    return is_dead_after(pair.file, pair.first.values[0], pair.second)


def way_back(file: File, call: Call, label: str, *statements: str) -> Choice:
    """Return the choice that replaces a single vector call by several statements."""
    statement = call.statement if call.statement is not None else call.node
    text = f"\n{file.source.indent_of(statement)}".join(statements)
    return Choice(label, (file.replaced(statement, text),), forward=False)


def site_of(file: File, call: Call, *choices: Choice) -> Site:
    """Return the site of a call."""
    return Site(file.label(call.node.start_byte, file.source.text_of(call.node)), choices)


def _element(type_text: str) -> str:
    match = _TENSOR_TYPE.fullmatch(type_text)
    return match[1] if match else ""


@lru_cache(maxsize=64)
def _tensor_declarations(source: Source) -> dict[str, list[tuple[Node, str]]]:
    """Return the declarations of tensors, including parameters and members, with element types, by name."""
    declared: dict[str, list[tuple[Node, str]]] = defaultdict(list)
    for kind in ("parameter_declaration", "declaration", "field_declaration"):
        for node in source.nodes(kind):
            type_node = node.child_by_field_name("type")
            element = _element(source.bare(type_node)) if type_node is not None else ""
            for declarator in node.children_by_field_name("declarator") if element else []:
                declared[source.bare(declarator).removeprefix("&")].append((node, element))
    return declared


def _is_member(declaration: Node) -> bool:
    return declaration.type == "field_declaration"


def _constant_values(source: Source, name: str) -> Iterator[str]:
    """Yield the bare values of a file's constants with a name."""
    for kind, named, valued in (
        ("init_declarator", "declarator", "value"),
        ("field_declaration", "declarator", "default_value"),
        ("preproc_def", "name", "value"),
    ):
        for node in source.nodes(kind):
            target, value = node.child_by_field_name(named), node.child_by_field_name(valued)
            if target is not None and value is not None and source.text_of(target) == name:
                fixed = kind == "preproc_def" or _is_fixed(source, node)
                text = source.bare(value).partition("//")[0].strip("{}")
                yield text if fixed else "variable"


def _is_fixed(source: Source, node: Node) -> bool:
    holder = node if node.type == "field_declaration" else node.parent
    children = holder.children if holder is not None else []
    return any(
        child.type == "type_qualifier" and source.text_of(child) in ("const", "constexpr")
        for child in children
    )
