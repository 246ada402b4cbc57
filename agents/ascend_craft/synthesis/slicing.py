"""What indices and slices of numpy come to in the graph: views of tensors, and axes that agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents.ascend_craft.synthesis.graph import (
    LOOP,
    Dim,
    Graph,
    Node,
    NotCoveredError,
    Number,
    broadcast,
    computed,
)
from agents.ascend_craft.synthesis.loops import turns_of
from agents.ascend_craft.synthesis.views import (
    ONE,
    ZERO,
    Shift,
    Term,
    chosen,
    placed,
    shifted,
    simple,
    terms_of,
    text_of,
)
from agents.ascend_craft.synthesis.windows import Windows

_OWN = ("joined|", "counted|", LOOP)


def _is_made(axis: str) -> bool:
    """Say whether an axis is of our own making: no tensor has it."""
    return axis.startswith(_OWN)


def _pairs(one: Dim, other: Dim) -> list[tuple[str, str]]:
    """Return the axes of two dimensions that differ by name alone."""
    same = len(one) == len(other)
    return [(a, b) for a, b in zip(one, other, strict=True) if a != b] if same else []


def _number_of(parts: Mapping[str, int], like: Number) -> Number:
    """Return a sum of terms as a number; what turns of loops add is 0 in the first of them."""
    if not parts:
        return ZERO
    text = text_of(parts)
    try:
        return Number.of(int(text) if like.whole else float(text))
    except ValueError:
        return Number(text, like.value, like.whole)


class TensorParts:
    """Makes nodes of parts of tensors, and of tensors that are put together.

    The axes of nodes agree where the nodes meet.

    Attributes:
        graph: where the nodes are.
        progressions: nodes that are places along an axis, by their identity.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.progressions: dict[int, Shift] = {}

    def elementwise(self, op: str, *nodes: Node) -> Node:
        """Return a function of nodes; dimensions that meet are as long, or the reference would not run."""
        alike = [nodes[0]]
        for node in nodes[1:]:
            alike = [self._named_as(each, node, may=_is_made) for each in alike]
            dims = alike[0].dims
            for each in alike[1:]:
                dims = broadcast(dims, each.dims)
            alike.append(self._named_as(node, self.graph.node("as", (node,), dims), may=lambda axis: True))
        return self.graph.elementwise(op, *alike)

    def _named_as(self, node: Node, like: Node, may: Callable[[str], bool]) -> Node:
        """Return a node with axes named as those of another one that they meet."""
        for back in range(1, min(len(node.dims), len(like.dims)) + 1):
            for own, other in _pairs(node.dims[-back], like.dims[-back]):
                if self.graph.axis_size[own] == self.graph.axis_size[other] and may(own):
                    node = self._renamed(node, own, other)
        elsewhere = {axis: place - len(like.dims) for place, dim in enumerate(like.dims) for axis in dim}
        for place, dim in enumerate(node.dims):
            for axis in dim:
                if elsewhere.get(axis, place - len(node.dims)) != place - len(node.dims):
                    node = self._renamed(node, axis, self._twin(axis, node, like))
        return node

    def _renamed(self, node: Node, old: str, new: str) -> Node:
        if new in node.axes:
            node = self._renamed(node, new, self._twin(new, node, node))
        return shifted(self.graph, node, old, Shift((new,), (Term(new),)))

    def _twin(self, axis: str, *nodes: Node) -> str:
        """Return an axis as long as another one that no node has."""
        name = f"{axis}'"
        while any(name in each.axes for each in nodes):
            name += "'"
        return self.graph.declare(name, self.graph.extent((axis,)))

    def indexed(self, node: Node, keys: tuple[Any, ...]) -> Node:
        """Return a part of a tensor: each dimension as its key says."""
        dims: list[Dim] = []
        place = 0
        if sum(isinstance(key, Node) for key in keys) > 1:
            return self._one_each(node, keys)
        for key in keys:
            if key is None:
                dims.append(())
                continue
            if key is Ellipsis:
                keep = len(node.dims) - sum(each is not None and each is not Ellipsis for each in keys)
                dims += node.dims[place : place + keep]
                place += keep
                continue
            node, shape = self._part(node, place, key)
            dims += shape
            place += 1
        return self.graph.node("as", (node,), [*dims, *node.dims[place:]])

    def _one_each(self, node: Node, keys: tuple[Any, ...]) -> Node:
        """Return one element of each row: ``x[arange(rows), places]``."""
        rows, places = keys[0], keys[1]
        while isinstance(rows, Node) and rows.op == "as":
            (rows,) = rows.args
        counts = isinstance(rows, Node) and rows.op == "iota" and isinstance(places, Node)
        if len(keys) != 2 or not counts or len(places.dims) != 1 or len(node.dims) != 2:
            raise NotCoveredError("several tensors of places, other than arange and one of a row each")
        places = self._named_as(places, self.graph.node("as", (node,), node.dims[:1]), may=lambda axis: True)
        axis = self.axis(node, 1)
        found = chosen(self.graph, node, axis, places, ())
        return self.graph.node("as", (found,), found.dims[:1])

    def _part(self, node: Node, place: int, key: Any) -> tuple[Node, list[Dim]]:
        """Return a tensor cut at one dimension, which it still has, and the dimensions that replace it."""
        dim = node.dims[place]
        if isinstance(key, slice):
            cut = self.sliced(node, place, key)
            return cut, [cut.dims[place]]
        if isinstance(key, Node):
            return self._looked_up(node, place, key)
        if not isinstance(key, Number) or not key.whole:
            raise NotCoveredError("an index that is neither a whole number, a slice nor a tensor of places")
        if not dim:
            return node, []
        return self._at(node, place, self._from_end(key, self.graph.extent(dim))), []

    def axis(self, node: Node, place: int) -> str:
        """Return the only axis of a dimension.

        Raises:
            NotCoveredError: it has none, or several.
        """
        dim = node.dims[place]
        if len(dim) != 1:
            raise NotCoveredError("parts of an axis that a reshape joined or cut, or of an extent of 1")
        return dim[0]

    def _at(self, node: Node, place: int, at: Number) -> Node:
        axis = self.axis(node, place)
        terms, offset = self.without_loops(at)
        return shifted(self.graph, node, axis, Shift((), terms, offset))

    def without_loops(self, number: Number) -> tuple[tuple[Term, ...], Number]:
        """Return a number as a sum of steps along axes of loops, and the rest."""
        if LOOP not in number.text:
            return (), simple(number)
        parts = terms_of(number.text)
        if parts is None or any(LOOP in atom and not atom.startswith(LOOP) for atom in parts):
            raise NotCoveredError(f"the place {number.text}, which is no sum of variables of loops")
        steps = tuple(
            Term(atom, Number.of(factor)) for atom, factor in parts.items() if atom.startswith(LOOP)
        )
        rest = {atom: factor for atom, factor in parts.items() if not atom.startswith(LOOP)}
        return steps, _number_of(rest, number)

    def sliced(self, node: Node, place: int, key: slice) -> Node:
        """Return a tensor with one dimension cut."""
        dim, step = node.dims[place], ONE if key.step is None else key.step
        if step.value < 0:
            if key.start is not None or key.stop is not None or step.value != -1:
                raise NotCoveredError("slices backwards, other than of all")
            return self.flipped(node, place)
        if not dim:
            return node
        end = self.graph.extent(dim)
        start = ZERO if key.start is None else self._from_end(key.start, end)
        stop = end if key.stop is None else self._from_end(key.stop, end)
        if stop.value > end.value and LOOP not in stop.text:
            stop = end
        if start == ZERO and stop == end and step == ONE:
            return node
        axis = self.axis(node, place)
        extent = turns_of(start, stop, step)
        if LOOP in extent.text:
            raise NotCoveredError("slices whose length differs from turn to turn of a loop")
        if extent.value < 1:
            raise NotCoveredError("slices of nothing")
        if extent == ONE:
            dims = [() if each == place else other for each, other in enumerate(node.dims)]
            return self.graph.node("as", (self._at(node, place, start),), dims)
        terms, offset = self.without_loops(start)
        new = self.graph.axis(axis, extent)
        return shifted(self.graph, node, axis, Shift((new,), (Term(new, step), *terms), offset))

    def _from_end(self, at: Number, end: Number) -> Number:
        """Return a place from the start, also where it is counted from the end."""
        steps = [
            factor * (self.graph.axis_size[axis] - 1)
            for axis, factor in (terms_of(at.text) or {}).items()
            if axis in self.graph.axis_size and axis.startswith(LOOP)
        ]
        least = at.value + sum(each for each in steps if each < 0)
        most = at.value + sum(each for each in steps if each > 0)
        if least < 0 <= most:
            raise NotCoveredError("places that some turns of a loop count from the end")
        return at if least >= 0 else simple(computed("add", end, at))

    def _looked_up(self, node: Node, place: int, at: Node) -> tuple[Node, list[Dim]]:
        """Return rows of a tensor by numbers that another tensor has."""
        axis = self.axis(node, place)
        shift = self.progressions.get(id(at))
        if shift is not None:
            return shifted(self.graph, node, axis, shift), list(at.dims)
        joined = tuple(name for dim in at.dims for name in dim)
        found = chosen(self.graph, node, axis, at, joined)
        return found, list(at.dims)

    def flipped(self, node: Node, place: int) -> Node:
        """Return a tensor backwards along a dimension, as a node of its own that scans look for."""
        if node.op == "flip" and node.extra == place:
            return node.args[0]
        return self.graph.node("flip", (node,), node.dims, place)

    def unflipped(self, root: Node, done: dict[int, Node]) -> Node:
        """Return a tensor with views in place of what is read backwards."""
        if id(root) not in done:
            args = [self.unflipped(each, done) for each in root.args]
            if root.op == "flip":
                axis = self.axis(args[0], root.extra)
                last = simple(computed("sub", self.graph.extent((axis,)), ONE))
                backwards = Shift((axis,), (Term(axis, Number.of(-1)),), last)
                done[id(root)] = shifted(self.graph, args[0], axis, backwards)
            elif all(new is old for new, old in zip(args, root.args, strict=True)):
                done[id(root)] = root
            else:
                done[id(root)] = self.graph.node(root.op, args, root.dims, root.extra)
        return done[id(root)]

    def bordered(self, windows: Windows) -> Node:
        """Return a tensor with its borders, and with the windows taken as further dimensions at the end."""
        node, taps = windows.source, []
        for place, (kernel, stride, before, after) in windows.dims.items():
            axis = self.axis(node, place)
            whole = computed("add", computed("add", self.graph.extent((axis,)), before), after)
            guarded = any(not each.literal or each.value for each in (before, after))
            fill = windows.fill if guarded else None
            offset = simple(computed("neg", before))
            if not windows.viewed:
                new = self.graph.axis(axis, simple(whole))
                node = shifted(self.graph, node, axis, Shift((new,), (Term(new),), offset, fill))
                continue
            extent = simple(computed("add", computed("sub", whole, kernel), ONE))
            extent = turns_of(ZERO, extent, stride)
            new, tap = self.graph.axis(axis, extent), self._tap(axis, kernel)
            terms = (Term(new, stride), Term(tap))
            node = shifted(self.graph, node, axis, Shift((new, tap), terms, offset, fill))
            taps.append(tap)
        if not taps:
            return node
        dims = [tuple(axis for axis in dim if axis not in taps) for dim in node.dims]
        return self.graph.node("as", (node,), [*dims, *((tap,) for tap in taps)])

    def _tap(self, axis: str, kernel: Number) -> str:
        """Return the axis within a window."""
        return self.graph.declare(f"{axis}|window of {kernel.text}", kernel)

    def joined(self, nodes: Sequence[Node], place: int) -> Node:
        """Return tensors one behind the other along a dimension."""
        starts, end = [], ZERO
        for node in nodes:
            starts.append(end)
            end = simple(computed("add", end, self.graph.extent(node.dims[place])))
        named = [node.dims[place][0] for node in nodes if node.dims[place]]
        new = self.graph.axis(named[0], end) if named else self._row(end)
        total: Node | None = None
        for node, start in zip(nodes, starts, strict=True):
            part = self._within(node, place, new, start)
            total = part if total is None else self.elementwise("add", total, part)
        assert total is not None
        return total

    def _row(self, extent: Number) -> str:
        """Return an axis of its own that joins tensors."""
        return self.graph.declare(f"joined|{extent.text}", extent)

    def _within(self, node: Node, place: int, new: str, start: Number) -> Node:
        """Return a tensor put into a longer one, which is 0 elsewhere."""
        if node.dims[place]:
            axis = self.axis(node, place)
            shift = Shift((new,), (Term(new),), simple(computed("neg", start)), 0.0)
            return shifted(self.graph, node, axis, shift)
        dims = [(new,) if each == place else () for each in range(len(node.dims))]
        here = self.elementwise("eq", self.iota(new, dims), self.graph.number(start))
        return self.elementwise("where", here, node, self.graph.number(Number.of(0.0)))

    def merged(self, node: Node, place: int, into: str) -> Node:
        """Return a tensor with the two axes of a joined dimension made one."""
        outer, inner = node.dims[place]
        length = self.graph.extent((inner,))
        node = shifted(self.graph, node, outer, Shift((into,), (Term(into, ONE, length),)))
        rest = (Term(into), Term(into, computed("neg", length), length))
        return shifted(self.graph, node, inner, Shift((into,), rest))

    def iota(self, axis: str, dims: Sequence[Dim]) -> Node:
        """Return places along an axis as a tensor of given dimensions."""
        return placed(self.graph, Shift((axis,), (Term(axis),)), dims)

    def progression(self, shift: Shift) -> Node:
        """Return places as a tensor, which is known by them where it is an index."""
        found = placed(self.graph, shift, (shift.axes,))
        self.progressions[id(found)] = shift
        return found

    def stored(self, base: Node, keys: tuple[Any, ...], node: Node) -> Node:
        """Return a tensor of which a part was assigned."""
        (place, key) = self._only_part(base, keys)
        axis, end = self.axis(base, place), self.graph.extent(base.dims[place])
        start = ZERO if key.start is None else self._from_end(key.start, end)
        stop = end if key.stop is None else self._from_end(key.stop, end)
        if LOOP in start.text + stop.text:
            raise NotCoveredError("assignments whose place differs from turn to turn of a loop")
        dims = [(axis,) if each == place else () for each in range(len(base.dims))]
        at, graph = self.iota(axis, dims), self.graph
        own = place - len(base.dims) + len(node.dims)
        if own >= 0 and node.dims[own]:
            node = self._within(node, own, axis, start)
        below = self.elementwise("where", self.elementwise("lt", at, graph.number(stop)), node, base)
        return self.elementwise("where", self.elementwise("ge", at, graph.number(start)), below, base)

    def _only_part(self, node: Node, keys: tuple[Any, ...]) -> tuple[int, slice]:
        """Return the only dimension of which a key takes a part."""
        if Ellipsis in keys:
            at = keys.index(Ellipsis)
            keys = (*keys[:at], *[slice(None)] * (len(node.dims) - len(keys) + 1), *keys[at + 1 :])
        cut = [(place, key) for place, key in enumerate(keys) if key != slice(None, None, None)]
        if len(cut) != 1 or not isinstance(cut[0][1], slice) or cut[0][1].step is not None:
            raise NotCoveredError("assignments to parts other than one slice of one dimension")
        return cut[0]
