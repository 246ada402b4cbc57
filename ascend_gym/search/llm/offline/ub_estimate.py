"""How much of UB the buffers of a kernel take, as far as its text and the tiling constants tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from tree_sitter import Node

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.constants import constants_of
from ascend_gym.rewrites.rule import File, View
from ascend_gym.rewrites.syntax import Call, Source, ancestor, parse

UB_BYTES = 192 * 1024

_SIZES_BYTES = {
    "half": 2,
    "bfloat16_t": 2,
    "float": 4,
    "int32_t": 4,
    "uint32_t": 4,
    "int16_t": 2,
    "uint16_t": 2,
    "int8_t": 1,
    "uint8_t": 1,
    "bool": 1,
    "int64_t": 8,
    "uint64_t": 8,
    "double": 8,
}
_NARROW = re.compile(r"\b(?:half|bfloat16_t)\b")
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*")
_CALLS = {"InitBuffer": 1}
_DEPTH = 8


def fits_ub(after: Candidate, before: Candidate, element_bytes: Iterable[int]) -> bool:
    """Say whether buffers fit into UB, or take no more than before, for each element size.

    What is unknown counts nothing.
    """
    return all(ub_bytes(after, size) <= max(UB_BYTES, ub_bytes(before, size)) for size in element_bytes)


@lru_cache(maxsize=512)
def ub_bytes(candidate: Candidate, element_bytes: int) -> int:
    """Return at least how many bytes the kernel's ``InitBuffer`` calls ask for: the class that asks for most.

    Args:
        candidate: the operator.
        element_bytes: size of an element of a template parameter's type.
    """
    view = View(candidate)
    known = _known_values([*view.kernel, *view.host])
    by_class: dict[tuple[str, int], int] = {}
    for file in view.kernel:
        for call in file.source.calls:
            if call.name in _CALLS and _is_reached(file.source, call.node, element_bytes):
                owner = ancestor(call.node, "class_specifier")
                key = file.path, owner.start_byte if owner is not None else -1
                by_class[key] = by_class.get(key, 0) + _asked_bytes(file.source, call, known, element_bytes)
    return max(by_class.values(), default=0)


def _asked_bytes(source: Source, call: Call, known: Mapping[str, str], element_bytes: int) -> int:
    sizes = [_value(source, node, known, element_bytes, _DEPTH) for node in call.arguments[1:]]
    if len(sizes) == 1:
        return sizes[0] or 0
    if len(sizes) == 2 and sizes[1] is not None:
        return (sizes[0] or 1) * sizes[1]
    return 0


def _is_reached(source: Source, node: Node, element_bytes: int) -> bool:
    """Say whether no ``if`` about 16-bit types leaves ``node`` out for this element size."""
    child, parent = node, node.parent
    while parent is not None:
        if parent.type == "if_statement":
            condition = parent.child_by_field_name("condition")
            then = parent.child_by_field_name("consequence")
            about_narrow = condition is not None and _NARROW.search(source.text_of(condition)) is not None
            in_then = then is not None and child.start_byte == then.start_byte
            if about_narrow and in_then != (element_bytes == 2):
                return False
        child, parent = parent, parent.parent
    return True


def _known_values(files: list[File]) -> dict[str, str]:
    """Return, by name, the text of every value that has one definition, tiling fields included."""
    texts: dict[str, set[str]] = {}
    for file in files:
        for name, text in _definitions(file):
            texts.setdefault(name, set()).add(text)
    return {name: next(iter(found)) for name, found in texts.items() if len(found) == 1}


def _definitions(file: File) -> Iterator[tuple[str, str]]:
    for constant in constants_of(file):
        yield constant.name, constant.value_text
    for call in file.source.calls:
        if call.is_method and call.name.startswith("set_") and len(call.arguments) == 1:
            name = call.name.removeprefix("set_")
            if call.values[0] != name:
                yield name, call.values[0]


def _value(
    source: Source, node: Node, known: Mapping[str, str], element_bytes: int, depth: int
) -> int | None:
    """Return what an expression comes to, or ``None``."""
    text = source.text_of(node)
    literal = _INTEGER.fullmatch(text)
    if literal:
        return int(literal[1], 0 if literal[1][:2].lower() == "0x" else 10)
    if node.type == "sizeof_expression":
        named = re.sub(r"sizeof|[\s()]", "", text).rpartition("::")[2]
        return _SIZES_BYTES.get(named, element_bytes)
    if node.type in ("identifier", "field_expression", "qualified_identifier"):
        return _named_value(re.split(r"->|\.|::", text)[-1], known, element_bytes, depth)
    if node.type == "binary_expression":
        return _binary(source, node, known, element_bytes, depth)
    inner = [child for child in node.named_children if child.type != "comment"]
    if node.type == "parenthesized_expression" and len(inner) == 1:
        return _value(source, inner[0], known, element_bytes, depth)
    return None


def _named_value(name: str, known: Mapping[str, str], element_bytes: int, depth: int) -> int | None:
    if name not in known or depth == 0:
        return None
    source = parse(f"int value = {known[name]};")
    declared = source.nodes("init_declarator")
    value = declared[0].child_by_field_name("value") if declared else None
    return None if value is None else _value(source, value, known, element_bytes, depth - 1)


def _binary(
    source: Source, node: Node, known: Mapping[str, str], element_bytes: int, depth: int
) -> int | None:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = node.child_by_field_name("operator")
    if left is None or right is None or operator is None:
        return None
    a = _value(source, left, known, element_bytes, depth)
    b = _value(source, right, known, element_bytes, depth)
    if a is None or b is None:
        return None
    sign = source.text_of(operator)
    if sign in ("/", "%"):
        return None if b == 0 else (a // b if sign == "/" else a % b)
    return {"+": a + b, "-": a - b, "*": a * b}.get(sign)
