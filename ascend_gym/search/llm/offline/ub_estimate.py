"""How much of UB the buffers of a kernel take, as far as text, tiling constants and measurements tell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
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


_Sum = Mapping[tuple[str, ...], int]
"""Products of unknown values, by what they are made of, and how often each is added; () stands for 1."""


@dataclass(frozen=True)
class UbRoom:
    """What a prompt tells of UB.

    Attributes:
        element_bytes: sizes of the elements in the cases.
        taken_bytes: what the buffers of the present version take in the case where they take most; ``None``
            where that is not told.
    """

    element_bytes: tuple[int, ...] = ()
    taken_bytes: int | None = None


def fits_ub(after: Candidate, before: Candidate, room: UbRoom) -> bool:
    """Say whether buffers fit into UB, or take no more than before, as far as is known.

    What is unknown counts nothing, except where the present version was measured and the tiling program
    stays as it is.
    """
    sizes_bytes = room.element_bytes
    if any(ub_bytes(after, size) > max(UB_BYTES, ub_bytes(before, size)) for size in sizes_bytes):
        return False
    if room.taken_bytes is None or after.host != before.host or after.kernel == before.kernel:
        return True
    taken_bytes = room.taken_bytes
    return not sizes_bytes or any(
        _grown_bytes(after, before, size, taken_bytes) <= max(UB_BYTES, taken_bytes) for size in sizes_bytes
    )


def ub_bytes(candidate: Candidate, element_bytes: int) -> int:
    """Return at least how many bytes the kernel's ``InitBuffer`` calls ask for: the class that asks for most.

    Args:
        candidate: the operator.
        element_bytes: size of an element of a template parameter's type.
    """
    return max((asked[()] for asked in _asked_by_class(candidate, element_bytes).values()), default=0)


def _grown_bytes(after: Candidate, before: Candidate, element_bytes: int, taken_bytes: int) -> int:
    """Return at least how many bytes the buffers take now that took ``taken_bytes`` before.

    Of several unknown values nothing is known but their sum, so each counts as if it had grown as little as
    the one that grew least. Classes that do not run count as well, and only make the growth seem smaller.
    """
    asked, wanted = (_asked_in_all(candidate, element_bytes) for candidate in (before, after))
    unknown = [product for product in asked if product and asked[product] > 0]
    rest_bytes = taken_bytes - asked[()]
    growth = min((wanted[product] / asked[product] for product in unknown), default=1.0)
    if rest_bytes < 0 or growth < 1.0 or (rest_bytes > 0 and not unknown):
        return 0
    return int(wanted[()] + rest_bytes * growth)


def _asked_in_all(candidate: Candidate, element_bytes: int) -> Counter[tuple[str, ...]]:
    return sum(_asked_by_class(candidate, element_bytes).values(), Counter())


@lru_cache(maxsize=512)
def _asked_by_class(
    candidate: Candidate, element_bytes: int
) -> dict[tuple[str, int], Counter[tuple[str, ...]]]:
    """Return the sums that the ``InitBuffer`` calls of each class of the kernel ask for, in their order."""
    view = View(candidate)
    known = _known_values(view)
    by_class: dict[tuple[str, int], Counter[tuple[str, ...]]] = {}
    for file in view.kernel:
        for call in file.source.calls:
            if call.name in _CALLS and _is_reached(file.source, call.node, element_bytes):
                owner = ancestor(call.node, "class_specifier")
                key = file.path, owner.start_byte if owner is not None else -1
                asked = by_class.setdefault(key, Counter())
                asked.update(_asked_bytes(file.source, call, known, element_bytes))
    return by_class


def _asked_bytes(source: Source, call: Call, known: Mapping[str, str], element_bytes: int) -> _Sum:
    sizes = [_value(source, node, known, element_bytes, _DEPTH) for node in call.arguments[1:]]
    if len(sizes) == 1:
        return sizes[0]
    return _product(*sizes) if len(sizes) == 2 else {}


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


def _known_values(view: View) -> dict[str, str]:
    """Return, by name, the text of every value that has one definition, tiling fields included.

    What the kernel defines itself is not what the tiling program calls the same.
    """
    host, kernel = _texts_by_name(view.host), _texts_by_name(view.kernel)
    return {name: next(iter(found)) for name, found in {**host, **kernel}.items() if len(found) == 1}


def _texts_by_name(files: Iterable[File]) -> dict[str, set[str]]:
    texts: dict[str, set[str]] = {}
    for file in files:
        for name, text in _definitions(file):
            texts.setdefault(name, set()).add(text)
    return texts


def _definitions(file: File) -> Iterator[tuple[str, str]]:
    for constant in constants_of(file):
        yield constant.name, constant.value_text
    for call in file.source.calls:
        if call.is_method and call.name.startswith("set_") and len(call.arguments) == 1:
            name = call.name.removeprefix("set_")
            if call.values[0] != name:
                yield name, call.values[0]


def _value(source: Source, node: Node, known: Mapping[str, str], element_bytes: int, depth: int) -> _Sum:
    """Return what an expression comes to; what is unknown stands for itself."""
    text = source.text_of(node)
    literal = _INTEGER.fullmatch(text)
    if literal:
        return {(): int(literal[1], 0 if literal[1][:2].lower() == "0x" else 10)}
    if node.type == "sizeof_expression":
        named = re.sub(r"sizeof|[\s()]", "", text).rpartition("::")[2]
        return {(): _SIZES_BYTES.get(named, element_bytes)}
    if node.type in ("identifier", "field_expression", "qualified_identifier"):
        return _named_value(re.split(r"->|\.|::", text)[-1], known, element_bytes, depth)
    if node.type == "binary_expression":
        return _binary(source, node, known, element_bytes, depth)
    inner = [child for child in node.named_children if child.type != "comment"]
    if node.type == "parenthesized_expression" and len(inner) == 1:
        return _value(source, inner[0], known, element_bytes, depth)
    return _unknown(text)


def _unknown(text: str) -> _Sum:
    return {(re.sub(r"\s", "", text),): 1}


def _named_value(name: str, known: Mapping[str, str], element_bytes: int, depth: int) -> _Sum:
    if name not in known or depth == 0:
        return _unknown(name)
    source = parse(f"int value = {known[name]};")
    declared = source.nodes("init_declarator")
    value = declared[0].child_by_field_name("value") if declared else None
    found = {} if value is None else _value(source, value, known, element_bytes, depth - 1)
    return found if found.keys() == {()} else _unknown(name)


def _binary(source: Source, node: Node, known: Mapping[str, str], element_bytes: int, depth: int) -> _Sum:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = node.child_by_field_name("operator")
    if left is None or right is None or operator is None:
        return _unknown(source.text_of(node))
    one = _value(source, left, known, element_bytes, depth)
    other = _value(source, right, known, element_bytes, depth)
    whole = one.keys() | other.keys() == {()}
    operate = _OPERATIONS.get(source.text_of(operator))
    divides = source.text_of(operator) in ("/", "%")
    if operate is None or (divides and not (whole and other[()])):
        return _unknown(source.text_of(node))
    return operate(one, other)


def _plus(one: _Sum, other: _Sum) -> _Sum:
    return {product: one.get(product, 0) + other.get(product, 0) for product in {**one, **other}}


def _product(one: _Sum, other: _Sum) -> _Sum:
    found: Counter[tuple[str, ...]] = Counter()
    for left, times in one.items():
        for right, often in other.items():
            found[tuple(sorted(left + right))] += times * often
    return found


_OPERATIONS: Mapping[str, Callable[[_Sum, _Sum], _Sum]] = {
    "+": _plus,
    "-": lambda one, other: _plus(one, {product: -often for product, often in other.items()}),
    "*": _product,
    "/": lambda one, other: {(): one[()] // other[()]},
    "%": lambda one, other: {(): one[()] % other[()]},
}
