"""Tensors that are made of nothing but a shape, and what moves the elements of others."""

# Methods np_NAME do what numpy.NAME does.
# ruff: noqa: D102

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from agents.ascend_craft.synthesis.arithmetic import Arithmetic
from agents.ascend_craft.synthesis.graph import Dim, Node, NotCoveredError, Number, computed
from agents.ascend_craft.synthesis.loops import turns_of
from agents.ascend_craft.synthesis.views import ONE, Shift, Term, shifted, simple


class Rearranging:
    """Makes tensors of numbers and of places; nodes of transposes, joins, splits and repetitions."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self.arithmetic, self.parts, self.graph = arithmetic, arithmetic.parts, arithmetic.graph
        self._counted = 0

    def _filled(self, value: Any, dims: Sequence[Dim]) -> Node:
        literal = isinstance(value, Number) and value.literal
        node = self.arithmetic.node(float(value.value) if literal else value)
        if any(node.dims):
            raise NotCoveredError("a tensor filled with another one")
        return self.graph.node("as", (node,), dims)

    def _dims_of(self, shape: Any) -> list[Dim]:
        extents = shape if isinstance(shape, tuple) else (shape,)
        known = {text: axis for axis, text in reversed(self.graph.axis_text.items())}
        texts = [simple(each).text for each in extents]
        found = [
            (known[text],) if text in known else (self._count(each),)
            for text, each in zip(texts, extents, strict=True)
        ]
        return [
            dim if found.index(dim) == at else (self._count(extents[at]),) for at, dim in enumerate(found)
        ]

    def _count(self, extent: Number) -> str:
        """Return an axis that no tensor has."""
        self._counted += 1
        return self.graph.declare(f"counted|{extent.text}|{self._counted}", extent)

    def np_arange(self, *given: Any) -> Node:
        start, stop, step = (Number.of(0), given[0], Number.of(1))
        if len(given) > 1:
            start, stop = given[:2]
        if len(given) > 2:
            step = given[2]
        if not all(each.whole for each in (start, stop, step)):
            raise NotCoveredError("arange of numbers that are not whole")
        axis = self._count(turns_of(start, stop, step))
        return self.parts.progression(Shift((axis,), (Term(axis, step),), start))

    def np_broadcast_to(self, value: Any, shape: Any) -> Node:
        node = self.arithmetic.node(value)
        extents = shape if isinstance(shape, tuple) else (shape,)
        dims: list[Dim] = [()] * (len(extents) - len(node.dims)) + list(node.dims)
        if all(dim or extent.value == 1 for dim, extent in zip(dims, extents, strict=True)):
            return self.graph.node("as", (node,), dims)
        made = self._dims_of(shape)
        dims = [dim or other for dim, other in zip(dims, made, strict=True)]
        return self.parts.elementwise("add", node, self._filled(0.0, dims))

    def np_zeros_like(self, value: Any) -> Node:
        return self._filled(0.0, self.arithmetic.node(value).dims)

    def np_ones_like(self, value: Any) -> Node:
        return self._filled(1.0, self.arithmetic.node(value).dims)

    def np_full_like(self, value: Any, fill: Any) -> Node:
        return self._filled(fill, self.arithmetic.node(value).dims)

    def np_zeros(self, shape: Any) -> Node:
        return self._filled(0.0, self._dims_of(shape))

    def np_ones(self, shape: Any) -> Node:
        return self._filled(1.0, self._dims_of(shape))

    def np_full(self, shape: Any, fill: Any) -> Node:
        return self._filled(fill, self._dims_of(shape))

    np_empty_like, np_empty = np_zeros_like, np_zeros

    def np_tril(self, value: Any, k: Any = None) -> Node:
        return self._triangle("le", value, k)

    def np_triu(self, value: Any, k: Any = None) -> Node:
        return self._triangle("ge", value, k)

    def _triangle(self, side: str, value: Any, k: Any) -> Node:
        node = self.arithmetic.node(value)
        rank = len(node.dims)
        row, column = (
            self.parts.iota(
                self.parts.axis(node, place),
                [dim if each == place else () for each, dim in enumerate(node.dims)],
            )
            for place in (rank - 2, rank - 1)
        )
        limit = row if k is None else self.arithmetic.apply("add", row, k)
        return self.arithmetic.where(self.arithmetic.apply(side, column, limit), node, Number.of(0.0))

    def np_flip(self, value: Any, axis: Any = None) -> Any:
        node = self.arithmetic.node(value)
        (place,) = self.arithmetic.axes(node, axis)
        return self.parts.flipped(node, place)

    def np_expand_dims(self, value: Any, axis: Any) -> Any:
        node = self.arithmetic.node(value)
        dims: list[Dim] = list(node.dims)
        dims.insert(int(axis.value) % (len(dims) + 1), ())
        return self.graph.node("as", (node,), dims)

    def np_transpose(self, value: Any, *order: Any) -> Node:
        node = self.arithmetic.node(value)
        given = order[0] if len(order) == 1 and isinstance(order[0], tuple) else order
        places = [int(each.value) for each in given] or list(reversed(range(len(node.dims))))
        return self.graph.node("as", (node,), [node.dims[place] for place in places])

    def np_swapaxes(self, value: Any, one: Any, other: Any) -> Node:
        node = self.arithmetic.node(value)
        dims = list(node.dims)
        a, b = int(one.value), int(other.value)
        dims[a], dims[b] = dims[b], dims[a]
        return self.graph.node("as", (node,), dims)

    def np_moveaxis(self, value: Any, source: Any, destination: Any) -> Node:
        node = self.arithmetic.node(value)
        dims = list(node.dims)
        moved = dims.pop(int(source.value) % len(dims))
        dims.insert(int(destination.value) % (len(dims) + 1), moved)
        return self.graph.node("as", (node,), dims)

    def np_concatenate(self, values: Any, axis: Any = None) -> Node:
        nodes = [self.arithmetic.node(each) for each in values]
        return self.parts.joined(nodes, 0 if axis is None else int(axis.value) % len(nodes[0].dims))

    def np_stack(self, values: Any, axis: Any = None) -> Node:
        place = Number.of(0) if axis is None else axis
        return self.np_concatenate([self.np_expand_dims(each, place) for each in values], place)

    def np_split(self, value: Any, parts: Any, axis: Any = None) -> tuple[Node, ...]:
        node = self.arithmetic.node(value)
        place = 0 if axis is None else int(axis.value) % len(node.dims)
        if not isinstance(parts, Number) or not parts.literal:
            raise NotCoveredError("splits other than into a given number of equal parts")
        extent = computed("floordiv", self.graph.extent(node.dims[place]), parts)
        cuts = [computed("mul", extent, Number.of(each)) for each in range(int(parts.value) + 1)]
        return tuple(
            self.parts.sliced(node, place, slice(low, high, None)) for low, high in itertools.pairwise(cuts)
        )

    def np_roll(self, value: Any, shift: Any, axis: Any = None) -> Node:
        node = self.arithmetic.node(value)
        if axis is None or not shift.whole:
            raise NotCoveredError("roll without an axis")
        (place,) = self.arithmetic.axes(node, axis)
        cut = (
            computed("neg", shift)
            if shift.value < 0
            else computed("sub", self.graph.extent(node.dims[place]), shift)
        )
        parts = [self.parts.sliced(node, place, each) for each in (slice(cut, None), slice(None, cut))]
        return self.parts.joined(parts, place)

    def np_diff(self, value: Any, n: Any = ONE, axis: Any = None) -> Node:
        node = self.arithmetic.node(value)
        if n != ONE:
            raise NotCoveredError("differences of differences")
        (place,) = self.arithmetic.axes(node, Number.of(-1) if axis is None else axis)
        later, sooner = slice(Number.of(1), None, None), slice(None, Number.of(-1), None)
        both = [self.parts.sliced(node, place, each) for each in (later, sooner)]
        return self.arithmetic.apply("sub", *both)  # type: ignore[no-any-return]

    def np_take(self, value: Any, index: Any, axis: Any = None) -> Node:
        node = self.arithmetic.node(value)
        if axis is None:
            raise NotCoveredError("take without an axis")
        keys = [slice(None)] * (int(axis.value) % len(node.dims))
        return self.parts.indexed(node, (*keys, index))

    def np_repeat(self, value: Any, times: Any, axis: Any = None) -> Node:
        """Return a tensor with each element several times."""
        node = self.arithmetic.node(value)
        if axis is None or not isinstance(times, Number):
            raise NotCoveredError("repeat without an axis, or as often as a tensor says")
        (place,) = self.arithmetic.axes(node, axis)
        extent = simple(computed("mul", self.graph.extent(node.dims[place]), times))
        if not node.dims[place]:
            dims = [(self._count(extent),) if k == place else () for k in range(len(node.dims))]
            return self.parts.elementwise("add", node, self._filled(0.0, dims))
        old = self.parts.axis(node, place)
        new = self.graph.axis(old, extent)
        return shifted(self.graph, node, old, Shift((new,), (Term(new, ONE, times),)))

    def np_tile(self, value: Any, times: Any) -> Any:
        node = self.arithmetic.node(value)
        counts = times if isinstance(times, tuple) else (times,)
        if len(counts) > len(node.dims) or not all(each.literal for each in counts):
            raise NotCoveredError("tile with more axes, or as often as a shape says")
        for place, count in enumerate(counts, len(node.dims) - len(counts)):
            if count.value > 1:
                node = self.parts.joined([node] * int(count.value), place)
        return node

    def continued(self, node: Node, width: Any, *, reflected: bool) -> Node:
        """Return a tensor with its ends repeated, or mirrored, beyond them."""
        for place, (before, after) in enumerate(width):
            if not (before.literal and after.literal):
                raise NotCoveredError("borders as wide as an attribute says that repeat or mirror the ends")
            one, extent = Number.of(1), self.graph.extent(node.dims[place])
            ends = []
            for turn in range(int(before.value), 0, -1):
                ends.append(Number.of(turn if reflected else 0))
            tails = []
            for turn in range(1, int(after.value) + 1):
                back = Number.of(turn + 1 if reflected else 1)
                tails.append(computed("sub", extent, back))
            slices = [slice(at, simple(computed("add", at, one))) for at in (*ends, *tails)]
            parts = [self.parts.sliced(node, place, each) for each in slices]
            if parts:
                node = self.parts.joined([*parts[: len(ends)], node, *parts[len(ends) :]], place)
        return node
