"""Scalar loops over the elements of tensors, and the equivalent vector instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ascend_gym.rewrites.loop_headers import CountingLoop, counting_loops, fresh_name, names_in
from ascend_gym.rewrites.rule import Choice, Effect, Family, File, Pipe, Rule, Side, Site, View, rule
from ascend_gym.rewrites.syntax import Call, Source, is_inside
from ascend_gym.rewrites.vector import (
    element_of,
    is_name,
    literal,
    site_of,
    tensor_positions,
    texts_of,
    vector_calls,
    way_back,
)

_VECTORISED = Effect((Pipe.SCALAR, Pipe.VECTOR), "one vector instruction instead of scalar work per element")
_BINARY = {"+": "Add", "-": "Sub", "*": "Mul"}
_WITH_SCALAR = {"+": "Adds", "*": "Muls"}
_OPERATORS = {name: operator for forms in (_BINARY, _WITH_SCALAR) for operator, name in forms.items()}
_INTEGER = re.compile(r"u?int\d*(?:_t)?|bool")


@rule(Family.COMPUTE, Side.KERNEL, _VECTORISED, inverse="scalar_fill")
def vector_fill(view: View) -> Iterator[Site]:
    """A for loop from 0 sets the elements of a local tensor to a value that does not depend on the index."""
    for stores in _stores(view):
        value = _uniform(stores, stores.value)
        if value is not None:
            yield _vectorised(stores, f"Duplicate({stores.target}, {value}, {stores.loop.bound_text})")


@rule(Family.COMPUTE, Side.KERNEL, _VECTORISED, inverse="scalar_index")
def vector_index(view: View) -> Iterator[Site]:
    """A for loop from 0 sets the elements of a local tensor to their index, plus or times a constant.

    Assumption for products: the rest of the last block of 32 bytes is unused.
    """
    for stores in _stores(view):
        first, factor = _first_index(stores), _index_factor(stores)
        begin = f"({stores.target}, static_cast<{stores.element}>(0)"
        if first is not None:
            yield _vectorised(stores, f"CreateVecIndex({stores.target}, {first}, {stores.loop.bound_text})")
        elif factor is not None:
            yield _vectorised(stores, f"ArithProgression{begin}, {factor}, {stores.loop.bound_text})")


@rule(Family.COMPUTE, Side.KERNEL, _VECTORISED, inverse="scalar_arithmetic")
def vector_arithmetic(view: View) -> Iterator[Site]:
    """A for loop from 0 sets the elements of a local tensor to those of others of its type.

    They are copied, or combined by +, - or * with each other or with a loop-invariant
    value.
    """
    for stores in _stores(view):
        arguments = _arithmetic(stores)
        if arguments is not None:
            yield _vectorised(stores, f"{arguments}, {stores.loop.bound_text})")


@rule(Family.COMPUTE, Side.KERNEL, _VECTORISED)
def scalar_fill(view: View) -> Iterator[Site]:
    """``Duplicate`` of a plain tensor of known element type.

    Undoes ``vector_fill``. Assumption: automatic synchronisation of scalar accesses.
    """
    for file, call, _ in _plain_calls(view, frozenset({"Duplicate"})):
        target, value, _ = texts_of(file, call)
        index = fresh_name(file.source, "element")
        yield _scalar_loop(file, call, index, f"{target}.SetValue({index}, {value});")


@rule(Family.COMPUTE, Side.KERNEL, _VECTORISED)
def scalar_index(view: View) -> Iterator[Site]:
    """``CreateVecIndex`` for a number of elements. Undoes ``vector_index``, like ``scalar_fill``."""
    for file in view.kernel:
        for call in file.source.calls:
            if call.name != "CreateVecIndex" or len(call.values) != 3 or call.statement is None:
                continue
            target, first, _ = texts_of(file, call)
            element = element_of(file.source, target, call.node) if is_name(target) else ""
            if element:
                index = fresh_name(file.source, "element")
                value = f"static_cast<{element}>({first} + static_cast<{element}>({index}))"
                yield _scalar_loop(file, call, index, f"{target}.SetValue({index}, {value});")


@rule(Family.COMPUTE, Side.KERNEL, _VECTORISED)
def scalar_arithmetic(view: View) -> Iterator[Site]:
    """``Add``, ``Sub``, ``Mul``, ``Adds`` or ``Muls`` of plain tensors of known element type.

    Undoes ``vector_arithmetic``, like ``scalar_fill``.
    """
    for file, call, element in _plain_calls(view, frozenset(_OPERATORS)):
        index = fresh_name(file.source, "element")
        target, *operands, _ = texts_of(file, call)
        read = [f"{operands[0]}.GetValue({index})", operands[1]]
        if call.name in _BINARY.values():
            read[1] = f"{operands[1]}.GetValue({index})"
        wide = "" if _INTEGER.fullmatch(element) else "static_cast<float>"
        left, right = (f"{wide}({value})" if wide else value for value in read)
        value = f"static_cast<{element}>({left} {_OPERATORS[call.name]} {right})"
        yield _scalar_loop(file, call, index, f"{target}.SetValue({index}, {value});")


RULES: tuple[Rule, ...] = (vector_fill, vector_index, vector_arithmetic)
REWINDS: tuple[Rule, ...] = (scalar_fill, scalar_index, scalar_arithmetic)


@dataclass(frozen=True)
class _Stores:
    """``for (i = 0; i < n; i++) target.SetValue(i, value);`` with the element type of the target."""

    loop: CountingLoop
    target: str
    value: Node
    element: str

    @property
    def source(self) -> Source:
        return self.loop.file.source


def _stores(view: View) -> Iterator[_Stores]:
    """Yield the loops that set each element of a plain local tensor, and do nothing else."""
    for file in view.kernel:
        calls = {call.statement.id: call for call in file.source.calls if call.statement is not None}
        for loop in counting_loops(file):
            call = calls.get(loop.steps[0].id) if len(loop.steps) == 1 else None
            if call is None or call.name != "SetValue" or (loop.start, loop.step) != ("0", "1"):
                continue
            target = call.callee.removesuffix(".SetValue").removeprefix("this->")
            if is_name(target) and len(call.values) == 2 and call.values[0] == loop.index:
                element = element_of(file.source, target, call.node)
                if element:
                    yield _Stores(loop, target, call.arguments[1], element)


def _vectorised(stores: _Stores, call: str) -> Site:
    loop = stores.loop
    edit = loop.file.replaced(loop.node, f"AscendC::{call.strip()};")
    return Site(loop.label(), (Choice(call, (edit,)),))


def _peeled(stores: _Stores, node: Node) -> Node:
    """Return an expression without outer brackets and casts to its own type or, for floats, to float."""
    own = {stores.element} if _INTEGER.fullmatch(stores.element) else {stores.element, "float"}
    while True:
        inner: Node | None = None
        if node.type == "parenthesized_expression":
            inner = node.named_children[0]
        elif node.type == "cast_expression":
            kind = node.child_by_field_name("type")
            if kind is not None and stores.source.bare(kind) in own:
                inner = node.child_by_field_name("value")
        elif node.type == "call_expression":
            function, arguments = (node.child_by_field_name(field) for field in ("function", "arguments"))
            casts = function is not None and stores.source.bare(function) in {
                name for kind in own for name in (f"static_cast<{kind}>", kind)
            }
            if casts and arguments is not None and len(arguments.named_children) == 1:
                inner = arguments.named_children[0]
        if inner is None:
            return node
        node = inner


def _uniform(stores: _Stores, node: Node) -> str | None:
    """Return a loop-invariant value of the element type; ``None`` if it is not invariant."""
    value = _peeled(stores, node)
    text = stores.source.text_of(value)
    calls = any(is_inside(call, value) for call in stores.source.nodes("call_expression"))
    if (
        (calls and literal(stores.source.bare(node)) is None)
        or "++" in text
        or "--" in text
        or stores.loop.index in names_in(text)
    ):
        return None
    return f"static_cast<{stores.element}>({text})"


def _read_tensor(stores: _Stores, node: Node) -> str | None:
    """Return the tensor of the same type of which an expression is the element at the index."""
    bare = stores.source.bare(_peeled(stores, node)).removeprefix("this->")
    name, _, rest = bare.partition(".GetValue(")
    if rest != f"{stores.loop.index})" or not is_name(name):
        return None
    return name if element_of(stores.source, name, node) == stores.element else None


def _operation(stores: _Stores) -> tuple[Node, str, Node] | None:
    """Return the operands and the operator of the value."""
    value = _peeled(stores, stores.value)
    if value.type != "binary_expression":
        return None
    left, operator, right = (value.child_by_field_name(field) for field in ("left", "operator", "right"))
    if left is None or operator is None or right is None:
        return None
    return left, stores.source.text_of(operator), right


def _first_index(stores: _Stores) -> str | None:
    """Return the value at index 0 if the value is the index, or the index plus a constant."""
    if stores.source.bare(_peeled(stores, stores.value)) == stores.loop.index:
        return f"static_cast<{stores.element}>(0)"
    return _beside_index(stores, "+")


def _index_factor(stores: _Stores) -> str | None:
    """Return the constant if the value is the index times a constant."""
    return _beside_index(stores, "*")


def _beside_index(stores: _Stores, operator: str) -> str | None:
    operation = _operation(stores)
    if operation is None or operation[1] != operator:
        return None
    for index, constant in ((operation[0], operation[2]), (operation[2], operation[0])):
        if stores.source.bare(_peeled(stores, index)) == stores.loop.index:
            return _uniform(stores, constant)
    return None


def _arithmetic(stores: _Stores) -> str | None:
    """Return the vector call of the value, without its number of elements."""
    copied = _read_tensor(stores, stores.value)
    if copied is not None:
        return f"Adds({stores.target}, {copied}, static_cast<{stores.element}>(0)"
    operation = _operation(stores)
    if operation is None or operation[1] not in _BINARY:
        return None
    left, operator, right = operation
    tensors = [_read_tensor(stores, operand) for operand in (left, right)]
    if None not in tensors:
        return f"{_BINARY[operator]}({stores.target}, {tensors[0]}, {tensors[1]}"
    if tensors[0] is None:
        tensors, right = tensors[::-1], left
    scalar = _uniform(stores, right)
    if tensors[0] is None or scalar is None or operator not in _WITH_SCALAR:
        return None
    return f"{_WITH_SCALAR[operator]}({stores.target}, {tensors[0]}, {scalar}"


def _plain_calls(view: View, names: frozenset[str]) -> Iterator[tuple[File, Call, str]]:
    """Yield the vector calls with those names on plain tensors, with the element type of the target."""
    for file in view.kernel:
        for call in vector_calls(file):
            if call.name in names and all(is_name(call.values[at]) for at in tensor_positions(call)):
                element = element_of(file.source, call.values[0], call.node)
                if element:
                    yield file, call, element


def _scalar_loop(file: File, call: Call, index: str, statement: str) -> Site:
    count = texts_of(file, call)[-1]
    header = f"for (int32_t {index} = 0; {index} < {count}; {index}++) {{"
    return site_of(file, call, way_back(file, call, "an element at a time", header, f"    {statement}", "}"))
