"""The first few of what is sorted: extremes, one after the other, each without those before it."""

# Methods np_NAME do what numpy.NAME does.
# ruff: noqa: D102

from __future__ import annotations

from typing import Any

from agents.ascend_craft.synthesis.arithmetic import MOST_RANKED, Sorted
from agents.ascend_craft.synthesis.graph import Dim, Node, NotCoveredError, Number
from agents.ascend_craft.synthesis.rearranging import Rearranging


class Ranking:
    """Makes nodes of the first or last few elements of what is sorted.

    Attributes:
        chosen: what was sorted and its values there, for nodes of places, by their identity.
    """

    def __init__(self, rearranging: Rearranging) -> None:
        self.rearranging, self.arithmetic = rearranging, rearranging.arithmetic
        self.parts = rearranging.parts
        self.chosen: dict[int, tuple[Node, Node]] = {}

    def np_sort(self, value: Any, axis: Any = None, kind: Any = None) -> Sorted:
        node = self.arithmetic.node(value)
        return Sorted(node, self.arithmetic.axes(node, Number.of(-1) if axis is None else axis)[0])

    def np_argsort(self, value: Any, axis: Any = None, kind: Any = None) -> Sorted:
        """Return the places, those of equal elements in their order, as a stable sort has them."""
        node = self.arithmetic.node(value)
        return Sorted(
            node, self.arithmetic.axes(node, Number.of(-1) if axis is None else axis)[0], places=True
        )

    def ranked(self, value: Sorted, keys: tuple[Any, ...]) -> Any:
        """Return a part of what is sorted.

        Raises:
            NotCoveredError: it is not a few elements from one end.
        """
        rank = len(value.source.dims)
        if Ellipsis in keys:
            at = keys.index(Ellipsis)
            keys = (*keys[:at], *[slice(None)] * (rank - len(keys) + 1), *keys[at + 1 :])
        key = keys[value.place] if value.place < len(keys) else slice(None)
        if any(each != slice(None) for place, each in enumerate(keys) if place != value.place):
            raise NotCoveredError("parts of other dimensions of what is sorted")
        if isinstance(key, Number):
            return self._element(value, int(key.value) if key.literal else MOST_RANKED)
        backwards = isinstance(key.step, Number) and key.step.value == -1
        if backwards and key.start is None and key.stop is None:
            return Sorted(value.source, value.place, not value.descending, value.places)
        numbers = _numbers_of(key)
        parts = [self._element(value, number) for number in numbers]
        found = self.parts.joined(
            [self.rearranging.np_expand_dims(each, Number.of(value.place)) for each in parts], value.place
        )
        if value.places:
            values = Sorted(value.source, value.place, value.descending)
            nodes = [
                self.rearranging.np_expand_dims(self._element(values, n), Number.of(value.place))
                for n in numbers
            ]
            self.chosen[id(found)] = value.source, self.parts.joined(nodes, value.place)
        return found

    def _element(self, value: Sorted, number: int) -> Node:
        """Return the element of a number; those of negative ones count from the end."""
        largest = value.descending if number >= 0 else not value.descending
        turns = number + 1 if number >= 0 else -number
        if turns > MOST_RANKED:
            raise NotCoveredError(f"sorting, of which more than the first {MOST_RANKED} elements are wanted")
        kind, gone = ("max", -float("inf")) if largest else ("min", float("inf"))
        dims: list[Dim] = [dim if place == value.place else () for place, dim in enumerate(value.source.dims)]
        at = self.parts.iota(self.parts.axis(value.source, value.place), dims)
        axis, node = Number.of(value.place), value.source
        for _ in range(turns - 1):
            found = self.best_place(kind, node, axis, keepdims=True, last=largest and value.places)
            node = self.arithmetic.where(self.arithmetic.apply("eq", at, found), Number.of(gone), node)
        if value.places:
            return self.arithmetic.node(self.best_place(kind, node, axis, keepdims=False, last=largest))
        return self.arithmetic.node(self.arithmetic.reduction(kind, node, axis, False))

    def best_place(
        self, kind: str, value: Any, axis: Any, keepdims: Any = False, *, last: bool = False
    ) -> Any:
        """Return the first or last place of an extreme: the least or greatest of those where it is."""
        node = self.arithmetic.node(value)
        if axis is None:
            raise NotCoveredError("the place of an extreme without an axis")
        (place,) = self.arithmetic.axes(node, axis)
        dims = [dim if each == place else () for each, dim in enumerate(node.dims)]
        at = self.parts.iota(self.parts.axis(node, place), dims)
        best = self.arithmetic.reduction(kind, node, axis, True)
        places = self.arithmetic.where(
            self.arithmetic.apply("eq", node, best), at, Number.of(-1.0 if last else 1.0e9)
        )
        return self.arithmetic.reduction("max" if last else "min", places, axis, keepdims)


def _numbers_of(key: slice) -> list[int]:
    """Return the numbers of a slice of a few elements from one end."""
    ends = [each for each in (key.start, key.stop) if each is not None]
    literal = all(isinstance(each, Number) and each.literal for each in ends)
    step_ok = key.step is None
    if literal and step_ok and key.start is None and key.stop is not None and key.stop.value > 0:
        return list(range(int(key.stop.value)))
    if literal and step_ok and key.stop is None and key.start is not None and key.start.value < 0:
        return list(range(int(key.start.value), 0))
    backwards = isinstance(key.step, Number) and key.step.value == -1
    if literal and backwards and key.start is None and key.stop is not None and key.stop.value < 0:
        return list(range(-1, int(key.stop.value), -1))
    raise NotCoveredError("sorting, of which more than a given few elements are wanted")
