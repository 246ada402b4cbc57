"""Functions of tensors element by element, composed of those that the graph has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from agents.ascend_craft.synthesis.graph import LOOP, Dim, Node, NotCoveredError, Number, computed
from agents.ascend_craft.synthesis.slicing import Joining
from agents.ascend_craft.synthesis.views import ONE, ZERO, Shift, Term, placed
from agents.ascend_craft.synthesis.windows import Windows

OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
"""What is true where a comparison is not."""


def _is_zero(node: Node) -> bool:
    """Say whether a node is nothing but zeros, or the number 0."""
    while node.op == "as":
        (node,) = node.args
    return node.op == "number" and node.extra.literal and node.extra.value == 0


def _is_truth(node: Node) -> bool:
    """Say whether a node is 1 where something is true, and 0 elsewhere."""
    numbers = [each.extra for each in node.args[1:] if each.op == "number"]
    return node.op == "where" and [each.value for each in numbers if each.literal] == [1.0, 0.0]


class Arithmetic(Joining):
    """Makes nodes of functions; arguments are nodes, numbers, and tensors with borders."""

    def _progression(self, shift: Shift) -> Node:
        """Return places as a tensor; ``Rearranging`` does it."""
        raise NotImplementedError

    def _node(self, value: Any) -> Node:
        if isinstance(value, (bool, int, float)):
            value = Number.of(float(value))
        if isinstance(value, Number):
            return self._turn(value) if LOOP in value.text else self._graph.number(value)
        if isinstance(value, tuple) and len(value) == 1:
            inner = self._node(value[0])
            return self._graph.node("as", (inner,), [(), *inner.dims])
        if isinstance(value, Windows):
            return self._bordered(value)
        if not isinstance(value, Node):
            raise NotCoveredError(f"{type(value).__name__} where a tensor is expected")
        return value

    def _apply(self, op: str, *values: Any) -> Any:
        if all(isinstance(each, Number) for each in values):
            return computed(op, *values)
        if op == "pow" and isinstance(values[1], Number):
            return self._power(self._node(values[0]), values[1])
        if op == "pow":
            return self._power_of(values[0], self._node(values[1]))
        if op == "mod":
            return self._np_mod(*values)
        if op == "round":
            return self._rounded(self._counting(self._node(values[0])))
        if op == "floordiv" and isinstance(values[1], Number) and id(values[0]) in self._progressions:
            shift = self._progressions[id(values[0])]
            if shift.terms == (Term(shift.axes[0]),) and shift.offset == ZERO:
                terms = (Term(shift.axes[0], ONE, values[1]),)
                return self._progression(Shift(shift.axes, terms))
        if op == "floordiv":
            return self._np_floor(self._apply("div", *values))
        nodes = [self._node(each) for each in values]
        if op == "add" and any(_is_zero(each) for each in nodes):
            zero, other = sorted(nodes, key=lambda each: not _is_zero(each))
            if self._fits_into(zero.dims, other.dims):
                return other
        return self._elementwise(op, *(self._counting(each) for each in nodes))

    def _fits_into(self, small: Sequence[Dim], large: Sequence[Dim]) -> bool:
        """Say whether dimensions broadcast to others without making these longer."""
        pairs = zip(reversed(small), reversed(large), strict=False)
        extents = [tuple(self._graph.extent(dim).value for dim in pair) for pair in pairs]
        return len(small) <= len(large) and all(each[0] in (1, each[1]) for each in extents)

    def _rounded(self, node: Node) -> Node:
        """Return the nearest whole numbers; those that are too large for the formula are whole already."""
        small = self._apply_raw("lt", self._elementwise("abs", node), Number.of(2.0**22))
        return self._elementwise("where", small, self._elementwise("round", node), node)

    def _counting(self, node: Node) -> Node:
        """Return the outcome of a comparison as 1 and 0; other nodes as they are."""
        inner = node
        while inner.op == "as":
            (inner,) = inner.args
        if inner.op not in OPPOSITE:
            return node
        one, zero = (self._graph.number(Number.of(each)) for each in (1.0, 0.0))
        return self._elementwise("where", node, one, zero)

    def _turn(self, number: Number) -> Node:
        """Return a number that differs from turn to turn of a loop."""
        terms, offset = self._without_loops(number)
        return placed(self._graph, Shift((), terms, offset), ())

    def _power_of(self, base: Any, exponent: Node) -> Any:
        """Return a power by the logarithm of its base."""
        if isinstance(base, Number) and base.literal and base.value > 0:
            logarithm: Any = Number.of(math.log(base.value))
        else:
            logarithm = self._apply("log", self._node(base))
        return self._apply("exp", self._apply("mul", logarithm, exponent))

    def _power(self, base: Node, exponent: Number) -> Any:
        if LOOP in exponent.text:
            return self._power_of(base, self._node(exponent))
        power = exponent.value if exponent.literal else None
        if power in (0.5, -0.5):
            root = self._apply("sqrt", base)
            return root if power == 0.5 else self._apply("div", Number.of(1.0), root)
        if power is None or int(power) != power or not 1 <= abs(power) <= 8:
            logarithm = self._apply("log", base)
            return self._apply("exp", self._apply("mul", logarithm, exponent))
        result: Any = base
        for _ in range(int(abs(power)) - 1):
            result = self._apply("mul", result, base)
        return result if power > 0 else self._apply("div", Number.of(1.0), result)

    def _where(self, test: Any, yes: Any, no: Any) -> Node:
        if isinstance(test, Number) and LOOP in test.text:
            test = self._node(test)
        if isinstance(test, (Number, bool)):
            return self._node(yes if (test.value if isinstance(test, Number) else test) else no)
        return self._elementwise(
            "where", self._node(test), *(self._counting(self._node(each)) for each in (yes, no))
        )

    def _truth(self, value: Any) -> Node:
        node = self._counting(self._node(value))
        return node if _is_truth(node) else self._counting(self._apply_raw("ne", node, Number.of(0.0)))

    def _apply_raw(self, op: str, left: Node, right: Number) -> Node:
        return self._elementwise(op, left, self._graph.number(right))

    def _np_where(self, test: Any, yes: Any, no: Any, /) -> Node:
        return self._where(test, yes, no)

    def _np_square(self, value: Any, /) -> Any:
        return self._apply("mul", value, value)

    def _np_reciprocal(self, value: Any, /) -> Any:
        return self._apply("div", Number.of(1.0), value)

    def _np_log1p(self, value: Any, /) -> Any:
        return self._apply("log", self._apply("add", value, Number.of(1.0)))

    def _np_expm1(self, value: Any, /) -> Any:
        return self._apply("sub", self._apply("exp", value), Number.of(1.0))

    def _np_clip(
        self, value: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
    ) -> Any:
        least, most = (a_min if min is None else min), (a_max if max is None else max)
        value = value if least is None else self._apply("max", value, least)
        return value if most is None else self._apply("min", value, most)

    def _np_sign(self, value: Any) -> Any:
        below = self._where(self._apply("lt", value, Number.of(0.0)), Number.of(-1.0), Number.of(0.0))
        return self._where(self._apply("gt", value, Number.of(0.0)), Number.of(1.0), below)

    def _np_floor(self, value: Any) -> Any:
        near = self._apply("round", value)
        return self._apply("sub", near, self._apply("gt", near, value))

    def _np_ceil(self, value: Any) -> Any:
        near = self._apply("round", value)
        return self._apply("add", near, self._apply("lt", near, value))

    def _np_trunc(self, value: Any) -> Any:
        size = self._np_floor(self._apply("abs", value))
        return self._apply("mul", size, self._np_sign(value))

    def _np_mod(self, value: Any, divisor: Any) -> Any:
        whole = self._np_floor(self._apply("div", value, divisor))
        return self._apply("sub", value, self._apply("mul", whole, divisor))

    _np_remainder = _np_mod

    def _np_hypot(self, left: Any, right: Any) -> Any:
        squares = (self._apply("mul", each, each) for each in (left, right))
        return self._apply("sqrt", self._apply("add", *squares))

    def _np_logaddexp(self, left: Any, right: Any) -> Any:
        off = self._apply("neg", self._apply("abs", self._apply("sub", left, right)))
        terms = self._apply("add", self._apply("exp", off), Number.of(1.0))
        return self._apply("add", self._apply("max", left, right), self._apply("log", terms))

    def _np_logical_and(self, left: Any, right: Any) -> Any:
        return self._apply("mul", *(self._truth(each) for each in (left, right)))

    def _np_logical_or(self, left: Any, right: Any) -> Any:
        return self._apply("max", *(self._truth(each) for each in (left, right)))

    def _np_logical_not(self, value: Any) -> Any:
        return self._apply("sub", Number.of(1.0), self._truth(value))

    def _np_log2(self, value: Any) -> Any:
        return self._apply("mul", self._apply("log", value), Number.of(1.0 / math.log(2.0)))

    def _np_log10(self, value: Any) -> Any:
        return self._apply("mul", self._apply("log", value), Number.of(1.0 / math.log(10.0)))

    def _np_exp2(self, value: Any) -> Any:
        return self._apply("exp", self._apply("mul", value, Number.of(math.log(2.0))))

    def _np_sinh(self, value: Any) -> Any:
        return self._apply("mul", self._apply("sub", *self._both_exp(value)), Number.of(0.5))

    def _np_cosh(self, value: Any) -> Any:
        return self._apply("mul", self._apply("add", *self._both_exp(value)), Number.of(0.5))

    def _both_exp(self, value: Any) -> tuple[Any, Any]:
        return self._apply("exp", value), self._apply("exp", self._apply("neg", value))

    def _axes(self, node: Node, axis: Any) -> tuple[int, ...]:
        if axis is None:
            return tuple(range(len(node.dims)))
        given = axis if isinstance(axis, tuple) else (axis,)
        return tuple(sorted(int(each.value) % len(node.dims) for each in given))
