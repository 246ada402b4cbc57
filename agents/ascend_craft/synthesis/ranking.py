"""The first few of what is sorted: extremes, one after the other, each without those before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agents.ascend_craft.synthesis.graph import Dim, Node, NotCoveredError, Number
from agents.ascend_craft.synthesis.rearranging import Rearranging

_MOST = 4
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


class Ranking(Rearranging):
    """Makes nodes of the first or last few elements of what is sorted."""

    def __init__(self) -> None:
        super().__init__()
        self._chosen: dict[int, tuple[Node, Node]] = {}  # places with what was sorted, and its values there

    def _node(self, value: Any) -> Node:
        if isinstance(value, Sorted):
            raise NotCoveredError(f"sorting, of which more than the first {_MOST} elements are wanted")
        return super()._node(value)

    def _np_sort(self, value: Any, axis: Any = None, kind: Any = None) -> Sorted:
        node = self._node(value)
        return Sorted(node, self._axes(node, Number.of(-1) if axis is None else axis)[0])

    def _np_argsort(self, value: Any, axis: Any = None, kind: Any = None) -> Sorted:
        """Return the places, those of equal elements in their order, as a stable sort has them."""
        node = self._node(value)
        return Sorted(node, self._axes(node, Number.of(-1) if axis is None else axis)[0], places=True)

    def _ranked(self, value: Sorted, keys: tuple[Any, ...]) -> Any:
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
            return self._element(value, int(key.value) if key.literal else _MOST)
        backwards = isinstance(key.step, Number) and key.step.value == -1
        if backwards and key.start is None and key.stop is None:
            return Sorted(value.source, value.place, not value.descending, value.places)
        numbers = _numbers_of(key)
        parts = [self._element(value, number) for number in numbers]
        found = self._joined(
            [self._np_expand_dims(each, Number.of(value.place)) for each in parts], value.place
        )
        if value.places:
            values = Sorted(value.source, value.place, value.descending)
            nodes = [self._np_expand_dims(self._element(values, n), Number.of(value.place)) for n in numbers]
            self._chosen[id(found)] = value.source, self._joined(nodes, value.place)
        return found

    def _element(self, value: Sorted, number: int) -> Node:
        """Return the element of a number; those of negative ones count from the end."""
        largest = value.descending if number >= 0 else not value.descending
        turns = number + 1 if number >= 0 else -number
        if turns > _MOST:
            raise NotCoveredError(f"sorting, of which more than the first {_MOST} elements are wanted")
        kind, gone = ("max", -float("inf")) if largest else ("min", float("inf"))
        dims: list[Dim] = [dim if place == value.place else () for place, dim in enumerate(value.source.dims)]
        at = self._iota(self._axis(value.source, value.place), dims)
        axis, node = Number.of(value.place), value.source
        for _ in range(turns - 1):
            found = self._best_place(kind, node, axis, keepdims=True, last=largest and value.places)
            node = self._where(self._apply("eq", at, found), Number.of(gone), node)
        if value.places:
            return self._node(self._best_place(kind, node, axis, keepdims=False, last=largest))
        return self._node(self._reduced(kind, node, axis, False))

    def _best_place(
        self, kind: str, value: Any, axis: Any, keepdims: Any = False, *, last: bool = False
    ) -> Any:
        """Return the first or last place of an extreme: the least or greatest of those where it is."""
        node = self._node(value)
        if axis is None:
            raise NotCoveredError("the place of an extreme without an axis")
        (place,) = self._axes(node, axis)
        dims = [dim if each == place else () for each, dim in enumerate(node.dims)]
        at = self._iota(self._axis(node, place), dims)
        best = self._reduced(kind, node, axis, True)
        places = self._where(self._apply("eq", node, best), at, Number.of(-1.0 if last else 1.0e9))
        return self._reduced("max" if last else "min", places, axis, keepdims)

    def _reduced(self, kind: str, value: Any, axis: Any = None, keepdims: Any = False) -> Any:
        """Return a reduction; ``NumpyCalls`` does it."""
        raise NotImplementedError


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
