"""Functions of tensors element by element, composed of those that the graph has."""

# Methods np_NAME do what numpy.NAME does.
# ruff: noqa: D102

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.ascend_craft.synthesis.graph import LOOP, Dim, Node, NotCoveredError, Number, computed
from agents.ascend_craft.synthesis.slicing import TensorParts
from agents.ascend_craft.synthesis.views import ONE, ZERO, Shift, Term, placed
from agents.ascend_craft.synthesis.windows import Windows

OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
"""What is true where a comparison is not."""


MOST_RANKED = 4
"""Elements up to which extremes are looked for one by one."""


@dataclass(frozen=True, eq=False)
class Sorted:
    """A tensor sorted along a dimension, of which a few elements can be had.

    Attributes:
        source: what is sorted.
        place: the dimension.
        descending: whether the largest comes first.
        places: whether it holds places (``argsort``), not values.
    """

    source: Node
    place: int
    descending: bool = False
    places: bool = False


def _is_zero(node: Node) -> bool:
    """Say whether a node is nothing but zeros, or the number 0."""
    while node.op == "as":
        (node,) = node.args
    return node.op == "number" and node.extra.literal and node.extra.value == 0


def _is_truth(node: Node) -> bool:
    """Say whether a node is 1 where something is true, and 0 elsewhere."""
    numbers = [each.extra for each in node.args[1:] if each.op == "number"]
    return node.op == "where" and [each.value for each in numbers if each.literal] == [1.0, 0.0]


class Arithmetic:
    """Makes nodes of functions; arguments are nodes, numbers, and tensors with borders."""

    def __init__(self, parts: TensorParts) -> None:
        self.parts, self.graph = parts, parts.graph

    def node(self, value: Any) -> Node:
        """Return a value as a node.

        Raises:
            NotCoveredError: it is none that a tensor can be made of.
        """
        if isinstance(value, (bool, int, float)):
            value = Number.of(float(value))
        if isinstance(value, Number):
            return self._turn(value) if LOOP in value.text else self.graph.number(value)
        if isinstance(value, tuple) and len(value) == 1:
            inner = self.node(value[0])
            return self.graph.node("as", (inner,), [(), *inner.dims])
        if isinstance(value, Windows):
            return self.parts.bordered(value)
        if isinstance(value, Sorted):
            raise NotCoveredError(f"sorting, of which more than the first {MOST_RANKED} elements are wanted")
        if not isinstance(value, Node):
            raise NotCoveredError(f"{type(value).__name__} where a tensor is expected")
        return value

    def apply(self, op: str, *values: Any) -> Any:
        """Return a function of the graph, of numbers or nodes."""
        if all(isinstance(each, Number) for each in values):
            return computed(op, *values)
        if op == "pow" and isinstance(values[1], Number):
            return self._power(self.node(values[0]), values[1])
        if op == "pow":
            return self._power_of(values[0], self.node(values[1]))
        if op == "mod":
            return self.np_mod(*values)
        if op == "round":
            return self._rounded(self.counting(self.node(values[0])))
        if op == "floordiv" and isinstance(values[1], Number) and id(values[0]) in self.parts.progressions:
            shift = self.parts.progressions[id(values[0])]
            if shift.terms == (Term(shift.axes[0]),) and shift.offset == ZERO:
                terms = (Term(shift.axes[0], ONE, values[1]),)
                return self.parts.progression(Shift(shift.axes, terms))
        if op == "floordiv":
            return self.np_floor(self.apply("div", *values))
        nodes = [self.node(each) for each in values]
        if op == "add" and any(_is_zero(each) for each in nodes):
            zero, other = sorted(nodes, key=lambda each: not _is_zero(each))
            if self._fits_into(zero.dims, other.dims):
                return other
        return self.parts.elementwise(op, *(self.counting(each) for each in nodes))

    def _fits_into(self, small: Sequence[Dim], large: Sequence[Dim]) -> bool:
        """Say whether dimensions broadcast to others without making these longer."""
        pairs = zip(reversed(small), reversed(large), strict=False)
        extents = [tuple(self.graph.extent(dim).value for dim in pair) for pair in pairs]
        return len(small) <= len(large) and all(each[0] in (1, each[1]) for each in extents)

    def _rounded(self, node: Node) -> Node:
        """Return the nearest whole numbers; those that are too large for the formula are whole already."""
        small = self._apply_raw("lt", self.parts.elementwise("abs", node), Number.of(2.0**22))
        return self.parts.elementwise("where", small, self.parts.elementwise("round", node), node)

    def counting(self, node: Node) -> Node:
        """Return the outcome of a comparison as 1 and 0; other nodes as they are."""
        inner = node
        while inner.op == "as":
            (inner,) = inner.args
        if inner.op not in OPPOSITE:
            return node
        one, zero = (self.graph.number(Number.of(each)) for each in (1.0, 0.0))
        return self.parts.elementwise("where", node, one, zero)

    def _turn(self, number: Number) -> Node:
        """Return a number that differs from turn to turn of a loop."""
        terms, offset = self.parts.without_loops(number)
        return placed(self.graph, Shift((), terms, offset), ())

    def _power_of(self, base: Any, exponent: Node) -> Any:
        """Return a power by the logarithm of its base."""
        if isinstance(base, Number) and base.literal and base.value > 0:
            logarithm: Any = Number.of(math.log(base.value))
        else:
            logarithm = self.apply("log", self.node(base))
        return self.apply("exp", self.apply("mul", logarithm, exponent))

    def _power(self, base: Node, exponent: Number) -> Any:
        if LOOP in exponent.text:
            return self._power_of(base, self.node(exponent))
        power = exponent.value if exponent.literal else None
        if power in (0.5, -0.5):
            root = self.apply("sqrt", base)
            return root if power == 0.5 else self.apply("div", Number.of(1.0), root)
        if power is None or int(power) != power or not 1 <= abs(power) <= 8:
            logarithm = self.apply("log", base)
            return self.apply("exp", self.apply("mul", logarithm, exponent))
        result: Any = base
        for _ in range(int(abs(power)) - 1):
            result = self.apply("mul", result, base)
        return result if power > 0 else self.apply("div", Number.of(1.0), result)

    def where(self, test: Any, yes: Any, no: Any) -> Node:
        """Return one of two values element by element, or the one that a number decides on."""
        if isinstance(test, Number) and LOOP in test.text:
            test = self.node(test)
        if isinstance(test, (Number, bool)):
            return self.node(yes if (test.value if isinstance(test, Number) else test) else no)
        return self.parts.elementwise(
            "where", self.node(test), *(self.counting(self.node(each)) for each in (yes, no))
        )

    def truth(self, value: Any) -> Node:
        """Return 1 where a value is not 0, and 0 elsewhere."""
        node = self.counting(self.node(value))
        return node if _is_truth(node) else self.counting(self._apply_raw("ne", node, Number.of(0.0)))

    def _apply_raw(self, op: str, left: Node, right: Number) -> Node:
        return self.parts.elementwise(op, left, self.graph.number(right))

    def np_where(self, test: Any, yes: Any, no: Any, /) -> Node:
        return self.where(test, yes, no)

    def np_square(self, value: Any, /) -> Any:
        return self.apply("mul", value, value)

    def np_reciprocal(self, value: Any, /) -> Any:
        return self.apply("div", Number.of(1.0), value)

    def np_log1p(self, value: Any, /) -> Any:
        return self.apply("log", self.apply("add", value, Number.of(1.0)))

    def np_expm1(self, value: Any, /) -> Any:
        return self.apply("sub", self.apply("exp", value), Number.of(1.0))

    def np_clip(
        self, value: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
    ) -> Any:
        least, most = (a_min if min is None else min), (a_max if max is None else max)
        value = value if least is None else self.apply("max", value, least)
        return value if most is None else self.apply("min", value, most)

    def np_sign(self, value: Any) -> Any:
        below = self.where(self.apply("lt", value, Number.of(0.0)), Number.of(-1.0), Number.of(0.0))
        return self.where(self.apply("gt", value, Number.of(0.0)), Number.of(1.0), below)

    def np_floor(self, value: Any) -> Any:
        near = self.apply("round", value)
        return self.apply("sub", near, self.apply("gt", near, value))

    def np_ceil(self, value: Any) -> Any:
        near = self.apply("round", value)
        return self.apply("add", near, self.apply("lt", near, value))

    def np_trunc(self, value: Any) -> Any:
        size = self.np_floor(self.apply("abs", value))
        return self.apply("mul", size, self.np_sign(value))

    def np_mod(self, value: Any, divisor: Any) -> Any:
        whole = self.np_floor(self.apply("div", value, divisor))
        return self.apply("sub", value, self.apply("mul", whole, divisor))

    np_remainder = np_mod

    def np_hypot(self, left: Any, right: Any) -> Any:
        squares = (self.apply("mul", each, each) for each in (left, right))
        return self.apply("sqrt", self.apply("add", *squares))

    def np_logaddexp(self, left: Any, right: Any) -> Any:
        off = self.apply("neg", self.apply("abs", self.apply("sub", left, right)))
        terms = self.apply("add", self.apply("exp", off), Number.of(1.0))
        return self.apply("add", self.apply("max", left, right), self.apply("log", terms))

    def np_logical_and(self, left: Any, right: Any) -> Any:
        return self.apply("mul", *(self.truth(each) for each in (left, right)))

    def np_logical_or(self, left: Any, right: Any) -> Any:
        return self.apply("max", *(self.truth(each) for each in (left, right)))

    def np_logical_not(self, value: Any) -> Any:
        return self.apply("sub", Number.of(1.0), self.truth(value))

    def np_log2(self, value: Any) -> Any:
        return self.apply("mul", self.apply("log", value), Number.of(1.0 / math.log(2.0)))

    def np_log10(self, value: Any) -> Any:
        return self.apply("mul", self.apply("log", value), Number.of(1.0 / math.log(10.0)))

    def np_exp2(self, value: Any) -> Any:
        return self.apply("exp", self.apply("mul", value, Number.of(math.log(2.0))))

    def np_sinh(self, value: Any) -> Any:
        return self.apply("mul", self.apply("sub", *self._both_exp(value)), Number.of(0.5))

    def np_cosh(self, value: Any) -> Any:
        return self.apply("mul", self.apply("add", *self._both_exp(value)), Number.of(0.5))

    def _both_exp(self, value: Any) -> tuple[Any, Any]:
        return self.apply("exp", value), self.apply("exp", self.apply("neg", value))

    def axes(self, node: Node, axis: Any) -> tuple[int, ...]:
        """Return the dimensions that an ``axis`` names, in ascending order; all for ``None``."""
        if axis is None:
            return tuple(range(len(node.dims)))
        given = axis if isinstance(axis, tuple) else (axis,)
        return tuple(sorted(int(each.value) % len(node.dims) for each in given))

    def reduction(self, kind: str, value: Any, axis: Any = None, keepdims: Any = False) -> Node:
        """Return a tensor reduced along dimensions; by default along all."""
        node = self.counting(self.node(value))
        places = self.axes(node, axis)
        gone = tuple(name for place in places for name in node.dims[place])
        kept = tuple(() if k in places else dim for k, dim in enumerate(node.dims))
        shape = kept if keepdims else tuple(dim for k, dim in enumerate(kept) if k not in places)
        if not gone:
            return self.graph.node("as", (node,), shape)
        return self.graph.node("reduce", (node,), shape, (kind, gone))
