"""Cuts what a program has to compute into sections: loops over the same units of work.

A unit is one position of the axes that nothing reduces. Sections that feed a reduction over everything come
before the cores meet, all others after it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from agents.ascend_craft.synthesis.graph import LOOP, Graph, Node, NotCoveredError, descendants
from agents.ascend_craft.synthesis.views import Index, Look, Term


@dataclass(frozen=True)
class Root:
    """Something that a section computes: an output to store, or a part of a reduction over everything.

    Attributes:
        node: the output, or the reduction.
        output: name of the output; ``None`` for a reduction.
    """

    node: Node
    output: str | None = None

    @property
    def value(self) -> Node:
        """What is computed for each element."""
        return self.node if self.output is not None else self.node.args[0]


@dataclass(frozen=True)
class SectionAxis:
    """An axis of a section: one axis of the graph or neighbours that always go together.

    Attributes:
        name: of the host's variable with its extent.
        text: its extent in the language of the host.
        size: its extent in the first case.
        members: the axes of the graph.
    """

    name: str
    text: str
    size: int
    members: tuple[str, ...]


@dataclass
class Section:
    """Roots with the same units.

    Attributes:
        roots: what is computed.
        axes: all axes in order, neighbours merged.
        parallel: names of those that make up the units.
        texts: extent of each axis of the graph in the language of the host.
    """

    roots: list[Root]
    axes: list[SectionAxis] = field(default_factory=list)
    parallel: list[str] = field(default_factory=list)
    texts: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _axis_of(self) -> dict[str, str]:
        return {member: axis.name for axis in self.axes for member in axis.members}

    @property
    def rows_in_all(self) -> int:
        """How many rows there are in the first case: positions of all axes but the vector axis."""
        return math.prod(axis.size for axis in self.axes[:-1])

    def ends_group(self, member: str) -> bool:
        """Say whether an axis of the graph is the last of those that are one here."""
        return self.axis(self._axis_of[member]).members[-1] == member

    def axis_of(self, member: str) -> str:
        """Return the name of the axis that has an axis of the graph."""
        return self._axis_of[member]

    def axes_of(self, node: Node) -> list[str]:
        """Return the axes of a node, in the section's order."""
        present = {self._axis_of[axis] for axis in node.axes}
        return [axis.name for axis in self.axes if axis.name in present]

    @property
    def vector(self) -> str | None:
        """The axis along which vectors lie: the last one."""
        return self.axes[-1].name if self.axes else None

    @property
    def vector_is_parallel(self) -> bool:
        """Whether units are cut along the vector axis too."""
        return self.vector in self.parallel

    def is_view(self, node: Node) -> bool:
        """Say whether a node is read otherwise than row by row: a view, or an input across its rows."""
        if node.op != "input":
            return node.op == "view"
        names = [self._axis_of[axis] for axis in node.axes if axis in self._axis_of]
        order = [axis.name for axis in self.axes]
        places = [order.index(name) for name in names]
        return places != sorted(places)

    def axis(self, name: str) -> SectionAxis:
        """Return the axis of that name."""
        return next(each for each in self.axes if each.name == name)

    def has_vector(self, node: Node) -> bool:
        """Say whether a node has the vector axis."""
        return self.vector in self.axes_of(node) if node.axes else False

    def inner(self, node: Node) -> list[str]:
        """Return the axes of a node over which a unit has to loop."""
        return [name for name in self.axes_of(node) if name not in self.parallel]


def is_global(node: Node) -> bool:
    """Say whether a node is a reduction over everything that it has left."""
    return node.op == "reduce" and not node.axes


def depth_of(node: Node) -> int:
    """Return how many reductions over everything have to be done before a node can be computed."""
    depths: dict[int, int] = {}
    for each in descendants([node]):
        below = max((depths[id(arg)] for arg in each.args), default=0)
        depths[id(each)] = below + is_global(each)
    return depths[id(node)]


def phases_of(graph: Graph) -> list[list[Section]]:
    """Return the sections of each phase; the cores meet between phases.

    Raises:
        NotCoveredError: axes do not come in one order, or reductions are nested in another way.
    """
    outputs = [Root(node, name) for name, node in graph.outputs.items() if node.axes]
    nodes = list(descendants(list(graph.outputs.values())))
    globals_ = [Root(node) for node in nodes if is_global(node)]
    count = max([depth_of(root.node) for root in outputs], default=0) + 1
    count = max([count, *(depth_of(root.node) for root in globals_)])
    phases: list[list[Section]] = []
    for phase in range(count):
        roots = [root for root in globals_ if depth_of(root.node) == phase + 1]
        roots += [root for root in outputs if depth_of(root.node) == phase]
        phases.append(_sections(graph, roots))
    return phases


def _sections(graph: Graph, roots: Sequence[Root]) -> list[Section]:
    grouped: dict[tuple[tuple[str, ...], bool], list[Root]] = {}
    for root in roots:
        inner = _reduced_axes(root.value)
        parallel = tuple(axis for axis in root.value.axes if axis not in inner)
        grouped.setdefault((parallel, bool(inner)), []).append(root)
    return [_section(graph, members, parallel) for (parallel, _), members in grouped.items()]


def _below(node: Node) -> list[Node]:
    """Return a node and what it is computed from, up to reductions over everything."""
    return list(descendants([node], is_global))


def _reduced_axes(node: Node) -> set[str]:
    """Return the axes that are reduced or scanned on the way to a node."""
    gone: set[str] = set()
    for each in _below(node):
        if each.op == "reduce" and not is_global(each):
            gone |= set(each.extra[1])
        elif each.op == "scan":
            gone.add(each.extra[1])
    return gone


def _section(graph: Graph, roots: list[Root], parallel: tuple[str, ...]) -> Section:
    nodes = [node for root in roots for node in _below(root.value) if not is_global(node)]
    order = _order_of(graph, roots, nodes)
    groups = _merged(graph, order, nodes, set(parallel))
    axes = [
        SectionAxis(f"n{_number(graph, members)}", _product(graph, members), _size(graph, members), members)
        for members in groups
    ]
    names = [axis.name for axis in axes if set(axis.members) <= set(parallel)]
    return Section(roots, axes, names, graph.axis_text)


def _number(graph: Graph, members: Sequence[str]) -> str:
    """Return a name that stands for the same axes in every section."""
    known = list(graph.axis_size)
    return "_".join(str(known.index(member)) for member in members)


def _product(graph: Graph, members: Sequence[str]) -> str:
    return " * ".join(graph.axis_text[member] for member in members)


def _size(graph: Graph, members: Sequence[str]) -> int:
    size = 1
    for member in members:
        size *= graph.axis_size[member]
    return size


def _order_of(graph: Graph, roots: Sequence[Root], nodes: Sequence[Node]) -> list[str]:
    """Return all axes in an order: that of all tensors, or where there is none that of the outputs."""
    if not any(node.op in ("view", "iota") for node in nodes):
        try:
            return _ordered([node.axes for node in nodes])
        except NotCoveredError:
            pass
    stored = _ordered([root.value.axes for root in roots if root.output is not None])
    rest = list(dict.fromkeys(axis for node in nodes for axis in node.axes if axis not in stored))
    vector = _vector_of(graph, stored, rest, nodes)
    return [axis for axis in (*stored, *rest) if axis != vector] + ([vector] if vector else [])


def _vector_of(graph: Graph, stored: Sequence[str], rest: Sequence[str], nodes: Sequence[Node]) -> str | None:
    """Return the axis along which vectors lie: the longest one along which tensors are read side by side."""
    side_by_side: set[str] = set()
    across: set[str] = set()
    for node in nodes:
        last, others = _read_along(node)
        side_by_side |= last
        across |= others
    may = [*stored[-1:], *rest]
    good = [axis for axis in may if axis in side_by_side - across and not axis.startswith(LOOP)]
    if stored and (not good or (graph.axis_size[stored[-1]] >= 64 and stored[-1] in good)):
        return stored[-1]
    return max(good or may, key=lambda axis: graph.axis_size[axis], default=None)


def _read_along(node: Node) -> tuple[set[str], set[str]]:
    """Return the axes along which the elements of a tensor are side by side, and those that lie across."""
    if node.op == "input":
        return set(node.axes[-1:]), set(node.axes[:-1])
    if node.op != "view":
        return set(), set()
    found = [{axis for axis, *_ in index.terms} for index in node.extra.indices]
    return (found[-1] if found else set()), set().union(*found[:-1])


def _ordered(sequences: Sequence[Sequence[str]]) -> list[str]:
    """Return all axes in one order that every sequence keeps."""
    after: dict[str, set[str]] = {}
    for sequence in sequences:
        for place, axis in enumerate(sequence):
            after.setdefault(axis, set()).update(sequence[place + 1 :])
    order: list[str] = []
    while after:
        first = [axis for axis in after if not any(axis in rest for rest in after.values())]
        if not first:
            raise NotCoveredError("tensors whose axes come in different orders (transposes)")
        order.append(first[0])
        del after[first[0]]
    return order


def _is_row_after_row(graph: Graph, view: Node, outer: str, inner: str) -> bool:
    """Say whether a view reads two axes as one: whole rows of the inner one, one after the other."""
    if outer not in view.axes:
        return inner not in view.axes
    look: Look = view.extra
    for index, below, row in zip(look.indices, look.indices[1:], look.source.axes[1:], strict=False):
        if Term(outer) in index.terms:
            whole = below == Index((Term(inner),)) and graph.axis_text[inner] == graph.axis_text[row]
            once = sum(each.axis in (outer, inner) for all_ in look.indices for each in all_.terms) == 2
            return whole and once and not index.guarded and not view.args
    return False


def _crosses(node: Node, order: Sequence[str]) -> bool:
    places = [order.index(axis) for axis in node.axes]
    return places != sorted(places)


def _merged(
    graph: Graph, order: Sequence[str], nodes: Sequence[Node], parallel: set[str]
) -> list[tuple[str, ...]]:
    """Return the axes, neighbours joined that every node has or lacks together."""
    sets = [set(node.axes) for node in nodes]
    sets += [set(node.extra[1]) for node in nodes if node.op == "reduce"]
    sets.append(parallel)
    scanned = {node.extra[1] for node in nodes if node.op == "scan"}
    scanned |= {node.extra for node in nodes if node.op == "pick"}
    scanned |= {axis for node in nodes if node.op == "iota" for axis in node.axes}
    views = [node for node in nodes if node.op == "view"]
    scanned |= {axis for node in nodes if node.op == "input" and _crosses(node, order) for axis in node.axes}
    groups: list[list[str]] = []
    for axis in order:
        last = groups[-1][-1] if groups else None
        together = last is not None and all((axis in each) == (last in each) for each in sets)
        together = together and all(_is_row_after_row(graph, view, str(last), axis) for view in views)
        if together and not {axis, last} & scanned:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return [tuple(group) for group in groups]
