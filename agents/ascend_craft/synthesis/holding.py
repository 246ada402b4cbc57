"""Which values a compute stage has, in which buffers, and how often each is still used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from agents.ascend_craft.synthesis.graph import Node
from agents.ascend_craft.synthesis.places import Buffers, Mask, Place, Vector


class Holding:
    """Places of nodes in one stage. A temporary of its own goes back after the last use of its value."""

    def __init__(self, buffers: Buffers, known: Mapping[int, Place]) -> None:
        """Begin with what has a place before the stage; nodes are looked up by identity."""
        self._buffers, self._known = buffers, dict(known)
        self._uses: Counter[int] = Counter()
        self._named: dict[int, Node] = {}  # what is only another name of a node with the same place
        self._own: set[str] = set()
        self._targets: dict[int, str] = {}

    def place(self, node: Node) -> Place:
        """Return where a node is."""
        return self._known[id(node)]

    def done(self, node: Node) -> None:
        """Count one use of a node, and take its buffer back after the last."""
        node = self._itself(node)
        self._uses[id(node)] -= 1
        place = self._known.get(id(node))
        if self._uses[id(node)] <= 0 and isinstance(place, (Vector, Mask)) and place.buffer in self._own:
            self._own.discard(place.buffer)
            self._buffers.give(place.buffer)

    def _itself(self, node: Node) -> Node:
        """Return the node whose uses count for one that is only another name of it."""
        while id(node) in self._named:
            node = self._named[id(node)]
        return node

    def keep(self, node: Node) -> Place:
        """Return the place of a node, which the caller takes over."""
        place = self.place(node)
        if isinstance(place, Vector):
            self._own.discard(place.buffer)
        return place

    def owns(self, name: str) -> bool:
        """Say whether a buffer is a temporary of this stage."""
        return name in self._own

    def _take(self, kind: str = "t") -> str:
        name = self._buffers.take(kind)
        self._own.add(name)
        return name

    def _drop(self, name: str) -> None:
        self._own.discard(name)
        self._buffers.give(name)

    def _dst(self, node: Node) -> str:
        return self._targets.get(id(node)) or self._take()

    def _operands(self, node: Node) -> list[Place]:
        return [self.place(each) for each in node.args]

    def _release(self, node: Node) -> None:
        for each in node.args:
            self.done(each)

    def _pass_target(self, node: Node, has_vector: Callable[[Node], bool]) -> None:
        """Have what is only another name of a value computed where that is wanted."""
        target = self._targets.get(id(node))
        if node.op != "as" or target is None:
            return
        (source,) = node.args
        computed = id(source) not in self._known and source.op not in ("input", "number", "pick", "reduce")
        if computed and self._uses[id(source)] == 1 and has_vector(source):
            self._targets[id(source)] = target
