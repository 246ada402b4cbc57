"""Views: tensors read at other places than one after the other, as slices, borders and windows are.

What a reference takes a slice of need not be a tensor: a slice of a function is the function of slices, so
that each view is pushed down to the tensors that are read. There every axis of the tensor has an index: a sum
of axes with their steps, and an offset. Where it may lie beyond the tensor it is guarded, and a fill is read.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agents.ascend_craft.synthesis.graph import (
    Dim,
    Graph,
    Node,
    NotCoveredError,
    Number,
    at_zeros,
    computed,
    descendants,
)

ZERO, ONE = Number.of(0), Number.of(1)


class Term(NamedTuple):
    """One part of a place: every so many steps along an axis (``divisor``) it moves on by ``step``."""

    axis: str
    step: Number = ONE
    divisor: Number = ONE


@dataclass(frozen=True)
class Index:
    """The place along an axis of a tensor.

    Attributes:
        terms: are added up.
        offset: is added.
        guarded: whether it may lie beyond the tensor.
        label: which of the view's arguments is added, too; ``None`` for none.
    """

    terms: tuple[Term, ...]
    offset: Number = ZERO
    guarded: bool = False
    label: int | None = None

    def with_shift(self, axis: str, shift: Shift) -> Index:
        """Return the index when an axis is replaced."""
        terms: dict[tuple[str, Number], Number] = {}
        offset = self.offset
        for term in self.terms:
            moved: tuple[Term, ...] = (term,)
            if term.axis == axis:
                moved = _moved(term, shift)
                offset = simple(computed("add", offset, computed("mul", term.step, shift.offset)))
            for each in moved:
                key = (each.axis, each.divisor)
                terms[key] = _sum(terms.get(key), each.step)
        found = tuple(Term(name, step, divisor) for (name, divisor), step in terms.items())
        return Index(found, offset, self.guarded or self._guards(axis, shift), self.label)

    def _guards(self, axis: str, shift: Shift) -> bool:
        return shift.fill is not None and any(each.axis == axis for each in self.terms)


@dataclass(frozen=True)
class Shift:
    """What an axis is replaced by.

    Attributes:
        axes: those that stand in its place.
        terms: add up to the place along it.
        offset: is added.
        fill: what is read beyond it; ``None`` where it is not left.
    """

    axes: Dim
    terms: tuple[Term, ...]
    offset: Number = ZERO
    fill: float | None = None


@dataclass(frozen=True)
class Look:
    """What a view reads.

    Attributes:
        source: the input.
        indices: place along each of its axes, in order.
        fill: what is read beyond it.
    """

    source: Node
    indices: tuple[Index, ...]
    fill: float = 0.0


def shifted(graph: Graph, node: Node, axis: str, shift: Shift) -> Node:
    """Return a node with an axis replaced.

    Raises:
        NotCoveredError: something on the way to the tensors cannot be read at other places.
    """
    if shift.fill is None or is_plain(node, axis, shift.fill):
        return _pushed(graph, node, axis, shift, {})
    inner = _pushed(graph, node, axis, Shift(shift.axes, shift.terms, shift.offset, 0.0), {})
    leaves = [each for each in descendants([node]) if not each.args and axis in each.axes]
    if at_zeros(node, axis) == shift.fill and all(is_plain(each, axis, 0.0) for each in leaves):
        return inner
    dims = tuple(dim if set(dim) & set(shift.axes) else () for dim in inner.dims)
    place = placed(graph, shift, dims)
    fill = graph.number(Number.of(shift.fill))
    below_end = graph.elementwise("lt", place, graph.number(graph.extent((axis,))))
    within = graph.elementwise("where", below_end, inner, fill)
    return graph.elementwise(
        "where", graph.elementwise("ge", place, graph.number(Number.of(0.0))), within, fill
    )


def is_plain(node: Node, axis: str, fill: float) -> bool:
    """Say whether a border along an axis can be read instead of computed: that of an input, not yet seen."""
    while node.op == "as":
        (node,) = node.args
    if node.op == "input":
        return True
    if node.op != "view":
        return False
    look: Look = node.extra
    users = [each for each in look.indices if any(term.axis == axis for term in each.terms)]
    fits = not any(each.guarded for each in look.indices) or look.fill == fill
    return fits and len(users) == 1 and _covers_all(users[0], axis)


def _covers_all(index: Index, axis: str) -> bool:
    plain = index.terms == (Term(axis),) and index.offset == ZERO
    return plain and not index.guarded and index.label is None and "|" not in axis


def placed(graph: Graph, shift: Shift, dims: Sequence[Dim]) -> Node:
    """Return the place along a replaced axis as a tensor of these dimensions."""
    place: Node | None = None
    for axis, step, divisor in shift.terms:
        term = graph.node("iota", (), dims, axis)
        if divisor != ONE:
            term = _divided(graph, term, divisor)
        if step != ONE:
            term = graph.elementwise("mul", term, graph.number(step))
        place = term if place is None else graph.elementwise("add", place, term)
    if place is None:
        return graph.number(shift.offset)
    return place if shift.offset == ZERO else graph.elementwise("add", place, graph.number(shift.offset))


def _divided(graph: Graph, place: Node, divisor: Number) -> Node:
    """Return a whole number divided by another, without its remainder: what is half below is rounded."""
    share = computed("div", Number.of(1.0), divisor)
    middle = graph.elementwise("add", place, graph.number(Number.of(0.5)))
    part = graph.elementwise("mul", middle, graph.number(share))
    return graph.elementwise("round", graph.elementwise("add", part, graph.number(Number.of(-0.5))))


def _moved(term: Term, shift: Shift) -> tuple[Term, ...]:
    if term.divisor == ONE:
        return tuple(Term(e.axis, computed("mul", term.step, e.step), e.divisor) for e in shift.terms)
    if len(shift.terms) == 1 and shift.terms[0][1:] == (ONE, ONE) and shift.offset == ZERO:
        return (Term(shift.terms[0].axis, term.step, term.divisor),)
    raise NotCoveredError("parts of what is repeated")


def _pushed(graph: Graph, node: Node, axis: str, shift: Shift, done: dict[int, Node]) -> Node:
    if axis not in node.axes:
        return node
    if id(node) not in done:
        done[id(node)] = _replaced(graph, node, axis, shift, done)
    return done[id(node)]


def _replaced(graph: Graph, node: Node, axis: str, shift: Shift, done: dict[int, Node]) -> Node:
    dims = tuple(
        tuple(dict.fromkeys(n for each in dim for n in (shift.axes if each == axis else (each,))))
        for dim in node.dims
    )
    if node.op == "input":
        indices = tuple(Index((Term(name),)).with_shift(axis, shift) for name in node.axes)
        return graph.node("view", (), dims, Look(node, indices, shift.fill or 0.0))
    if node.op == "iota":
        return graph.node("as", (placed(graph, shift, dims),), dims)
    if node.op in ("flip", "pool", "pick") or (node.op == "scan" and node.extra[1] == axis):
        raise NotCoveredError(f"part of a {'window' if node.op == 'pool' else node.op}, read at other places")
    args = [_pushed(graph, each, axis, shift, done) for each in node.args]
    if node.op != "view":
        return graph.node(node.op, args, dims, node.extra)
    look: Look = node.extra
    fill = look.fill if shift.fill is None or any(each.guarded for each in look.indices) else shift.fill
    indices = tuple(each.with_shift(axis, shift) for each in look.indices)
    return graph.node("view", args, dims, Look(look.source, indices, fill))


def chosen(graph: Graph, node: Node, axis: str, label: Node, at: Dim) -> Node:
    """Return a tensor with the place along an axis read from another tensor.

    Args:
        graph: takes the node.
        node: the tensor, or a function of tensors element by element.
        axis: the axis.
        label: has the places.
        at: what stands in place of the axis.

    Raises:
        NotCoveredError: something else than inputs is read.
    """
    if axis not in node.axes:
        return node
    dims = tuple(
        tuple(dict.fromkeys(part for each in dim for part in (at if each == axis else (each,))))
        for dim in node.dims
    )
    while label.op == "as":
        (label,) = label.args
    if label.op != "input":
        raise NotCoveredError("elements chosen by something computed")
    if node.op == "input":
        indices = tuple(Index((), label=0) if name == axis else Index((Term(name),)) for name in node.axes)
        return graph.node("view", (label,), dims, Look(node, indices))
    if node.op in ("view", "iota", "reduce", "scan", "pool", "flip", "pick"):
        raise NotCoveredError(f"elements chosen from a {node.op}")
    args = [chosen(graph, each, axis, label, at) for each in node.args]
    return graph.node(node.op, args, dims, node.extra)


def _sum(left: Number | None, right: Number) -> Number:
    return right if left is None else simple(computed("add", left, right))


def simple(number: Number) -> Number:
    """Return a whole number with equal terms of its text put together."""
    if number.literal or not number.whole:
        return number
    parts = terms_of(number.text)
    if parts is None:
        return number
    text = text_of(parts)
    if not set(parts) - {""}:
        return Number.of(int(parts.get("", 0)))
    return Number(text, number.value, whole=True)


def text_of(parts: Mapping[str, int]) -> str:
    """Return a sum of terms as text."""
    texts = []
    for atom, factor in sorted(parts.items()):
        if factor:
            size = str(abs(factor)) if not atom else atom if abs(factor) == 1 else f"{abs(factor)} * {atom}"
            texts.append(f"{'-' if factor < 0 else '+'} {size}")
    texts.sort(key=lambda each: each[0] == "-")
    text = " ".join(texts).removeprefix("+ ")
    return f"({text})" if len(texts) > 1 or text.startswith("-") else text or "0"


def terms_of(text: str) -> dict[str, int] | None:
    """Return a sum as its terms with their factors, the constant under the empty text."""
    try:
        return _terms(ast.parse(text, mode="eval").body)
    except SyntaxError:
        return None


def _terms(node: ast.expr) -> dict[str, int]:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return {"": node.value}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return {atom: -factor for atom, factor in _terms(node.operand).items()}
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        left, right = _terms(node.left), _terms(node.right)
        sign = 1 if isinstance(node.op, ast.Add) else -1
        found = {atom: left.get(atom, 0) + sign * right.get(atom, 0) for atom in {**left, **right}}
        return {atom: factor for atom, factor in found.items() if factor}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _terms(node.left), _terms(node.right)
        for one, other in ((left, right), (right, left)):
            if not set(one) - {""}:
                return {atom: factor * one.get("", 0) for atom, factor in other.items() if one.get("", 0)}
    return {f"({ast.unparse(node)})" if isinstance(node, ast.BinOp) else ast.unparse(node): 1}
