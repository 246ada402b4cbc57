"""The kernel as a graph of functions, loops, branches, calls and queues, for graph neural networks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np
from gymnasium import spaces
from tree_sitter import Node

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.statements import INSTRUCTIONS
from ascend_gym.rewrites.syntax import Call, Source, parse


class NodeKind(str, Enum):
    """Kind of a graph node."""

    FUNCTION = "function"
    LOOP = "loop"
    BRANCH = "branch"
    COPY = "copy"
    VECTOR = "vector"
    SCALAR = "scalar"
    SYNC = "sync"
    QUEUE_OPERATION = "queue_operation"
    OTHER_CALL = "other_call"
    QUEUE = "queue"


class EdgeKind(str, Enum):
    """Relation between two nodes."""

    CONTAINS = "contains"  # a function, loop or branch -> what stands right inside it
    NEXT = "next"  # -> what follows at the same place
    CALLS = "calls"  # a call -> the function of that name
    USES = "uses"  # a queue operation -> its queue


Arrays = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]

_KINDS, _EDGES = tuple(NodeKind), tuple(EdgeKind)
_BLOCKS = {
    "function_definition": NodeKind.FUNCTION,
    "for_statement": NodeKind.LOOP,
    "for_range_loop": NodeKind.LOOP,
    "while_statement": NodeKind.LOOP,
    "do_statement": NodeKind.LOOP,
    "if_statement": NodeKind.BRANCH,
    "switch_statement": NodeKind.BRANCH,
}
_COPIES = frozenset({"DataCopy", "DataCopyPad"})
_SCALARS = frozenset({"GetValue", "SetValue"})
_SYNCS = frozenset({"SetFlag", "WaitFlag", "PipeBarrier", "pipe_barrier", "SyncAll"})
_QUEUE_OPERATIONS = frozenset({"AllocTensor", "FreeTensor", "EnQue", "DeQue", "InitBuffer"})
_MEASURES = 2  # behind the one-hot kind: depth of loops, ln(1 + arguments)


def graph_space() -> spaces.Graph:
    """Return the space of kernel graphs.

    A node is float32 of shape ``(len(NodeKind) + 2,)``: its kind, one-hot, then the number of enclosing loops
    divided by 8, and ln(1 + number of arguments) of a call. An edge is the number of its ``EdgeKind``.
    """
    node = spaces.Box(0.0, 32.0, (len(_KINDS) + _MEASURES,), np.float32)
    return spaces.Graph(node_space=node, edge_space=spaces.Discrete(len(_EDGES)))


def kernel_graph(candidate: Candidate) -> spaces.GraphInstance:
    """Return the graph of a candidate's kernel files: nodes in source order, then queues by name."""
    return spaces.GraphInstance(*(array.copy() for array in _arrays(candidate)))


@lru_cache(maxsize=1024)
def _arrays(candidate: Candidate) -> Arrays:
    graph = _Graph()
    for file in candidate.kernel.files:
        graph.read(parse(file.text))
    return graph.arrays()


@dataclass
class _Graph:
    kinds: list[NodeKind] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    arguments: list[int] = field(default_factory=list)
    edges: list[tuple[int, int, EdgeKind]] = field(default_factory=list)
    functions: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    callers: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    users: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def read(self, source: Source) -> None:
        """Add the nodes of one file, and the edges between them."""
        last_inside: dict[int, int] = {}  # by the block around, -1 for none
        for node, block, depth in self._places(source):
            last = last_inside.get(block)
            if block >= 0:
                self.edges.append((block, node, EdgeKind.CONTAINS))
            if last is not None and block >= 0:
                self.edges.append((last, node, EdgeKind.NEXT))
            last_inside[block] = node
            self.depths[node] = depth

    def arrays(self) -> Arrays:
        """Return nodes, edges and edge links, including the edges between files and to queues.

        Returns:
            Nodes, float32 of shape ``(nodes, len(NodeKind) + 2)``; edge kinds of shape ``(edges,)``; node
            numbers of both ends of each edge, of shape ``(edges, 2)``.
        """
        for name in sorted(set(self.callers) & set(self.functions)):
            pairs = [(caller, function) for caller in self.callers[name] for function in self.functions[name]]
            self.edges += [(caller, function, EdgeKind.CALLS) for caller, function in pairs]
        for name in sorted(self.users):
            queue = self._add(NodeKind.QUEUE)
            self.edges += [(user, queue, EdgeKind.USES) for user in self.users[name]]
        nodes = np.zeros((len(self.kinds), len(_KINDS) + _MEASURES), np.float32)
        for row, kind, depth, count in zip(nodes, self.kinds, self.depths, self.arguments, strict=True):
            row[_KINDS.index(kind)] = 1.0
            row[len(_KINDS) :] = min(depth / 8, 32.0), min(math.log1p(count), 32.0)
        links = np.array([edge[:2] for edge in self.edges], np.int32).reshape(-1, 2)
        kinds = np.array([_EDGES.index(edge[2]) for edge in self.edges], np.int64)
        return nodes, kinds, links

    def _places(self, source: Source) -> Iterator[tuple[int, int, int]]:
        """Add nodes in source order; yield each with its enclosing block and number of enclosing loops."""
        waiting: list[tuple[Node, int, int]] = [(source.root, -1, 0)]
        while waiting:
            syntax, block, depth = waiting.pop()
            inside, loops = block, depth
            if syntax.type in _BLOCKS:
                inside = self._add(_BLOCKS[syntax.type])
                loops = depth + (self.kinds[inside] is NodeKind.LOOP)
                if self.kinds[inside] is NodeKind.FUNCTION:
                    self.functions[_function_name(source, syntax)].append(inside)
                yield inside, block, depth
            elif syntax.type == "call_expression" and (call := source.call_of(syntax)) is not None:
                yield self._add_call(call), block, depth
            waiting += [(child, inside, loops) for child in reversed(syntax.named_children)]

    def _add_call(self, call: Call) -> int:
        kind = _kind_of(call)
        node = self._add(kind, len(call.values))
        if kind is NodeKind.QUEUE_OPERATION:
            named = call.name == "InitBuffer" and call.values
            self.users[call.values[0] if named else call.callee.rpartition(".")[0]].append(node)
        elif kind is NodeKind.OTHER_CALL:
            self.callers[call.name].append(node)
        return node

    def _add(self, kind: NodeKind, arguments: int = 0) -> int:
        self.kinds.append(kind)
        self.depths.append(0)
        self.arguments.append(arguments)
        return len(self.kinds) - 1


def _kind_of(call: Call) -> NodeKind:
    for names, kind in (
        (_COPIES, NodeKind.COPY),
        (_SCALARS, NodeKind.SCALAR),
        (_SYNCS, NodeKind.SYNC),
        (_QUEUE_OPERATIONS, NodeKind.QUEUE_OPERATION),
        (INSTRUCTIONS, NodeKind.VECTOR),
    ):
        if call.name in names:
            return kind
    return NodeKind.OTHER_CALL


def _function_name(source: Source, function: Node) -> str:
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    return source.text_of(name).rpartition("::")[2] if name is not None else ""
