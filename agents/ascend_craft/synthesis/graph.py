"""The expression of a reference as a graph over named axes.

A dimension of a tensor is a tuple of axes: one as a rule, none where its extent is 1, several where axes were
joined by a reshape. Two dimensions are equal when they have the same axes, whatever their extents in a case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Dim = tuple[str, ...]

LOOP = "loop_"
"""How the names of variables of loops begin in the text of numbers."""

_FUNCTIONS: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "max": max,
    "min": min,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "neg": lambda a: -a,
    "abs": abs,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
}
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%"}


class NotCoveredError(Exception):
    """A specification that the rules do not cover; the message says what of it."""


@dataclass(frozen=True)
class Number:
    """A number of the host: its text in the language, and its value in the first case."""

    text: str
    value: float
    whole: bool = False
    literal: bool = False

    @classmethod
    def of(cls, value: float) -> Number:
        """Return a literal."""
        whole = isinstance(value, int)
        text = str(value) if whole else repr(float(value))
        return cls(f"({text})" if value < 0 else text, value, whole, literal=True)


@dataclass(frozen=True, eq=False)
class Node:
    """A tensor that the expression computes.

    Attributes:
        op: ``input``, ``number``, ``reduce``, ``scan``, ``pick``, ``pool``, ``view`` (see ``views``),
            ``iota`` (the place along an axis) or the name of a function.
        args: what it is computed from.
        dims: its dimensions.
        extra: what the operation needs besides: the name of an input, a number, a kind with axes.
        unseen: axes of loops that it changes along, too; they are no dimensions of the reference's.
    """

    op: str
    args: tuple[Node, ...]
    dims: tuple[Dim, ...]
    extra: Any = None
    unseen: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Name the operation and its axes alone: graphs are large."""
        return f"{self.op}{list(self.axes)}"

    @property
    def axes(self) -> tuple[str, ...]:
        """Its axes in order, those of loops first."""
        return (*self.unseen, *(axis for dim in self.dims for axis in dim))


@dataclass
class Graph:
    """What a reference computes.

    Attributes:
        outputs: node of each output by name.
        axis_text: extent of each axis in the language of the host.
        axis_size: extent of each axis in the first case.
    """

    outputs: dict[str, Node] = field(default_factory=dict)
    axis_text: dict[str, str] = field(default_factory=dict)
    axis_size: dict[str, int] = field(default_factory=dict)
    _known: dict[Any, Node] = field(default_factory=dict)

    def node(self, op: str, args: Sequence[Node], dims: Sequence[Dim], extra: Any = None) -> Node:
        """Return the node of that description; equal ones are one.

        Args:
            op: operation.
            args: nodes that it reads.
            dims: axes of each dimension of its value.
            extra: what else tells it from others of that operation, such as a constant.
        """
        key = (op, tuple(id(each) for each in args), tuple(dims), extra)
        if key not in self._known:
            self._known[key] = Node(op, tuple(args), tuple(dims), extra, _unseen(op, args, dims, extra))
        return self._known[key]

    def declare(self, name: str, extent: Number) -> str:
        """Make an axis of a name, and return the name.

        Raises:
            NotCoveredError: its length differs from turn to turn of a loop.
        """
        if LOOP in extent.text:
            raise NotCoveredError("as many elements as the turn of a loop says")
        self.axis_size[name], self.axis_text[name] = int(extent.value), extent.text
        return name

    def axis(self, near: str, extent: Number) -> str:
        """Return the axis of a part of another one: ``near`` itself if it is that long."""
        root = near.partition("|")[0]
        for name in (near, root):
            if extent.text == self.axis_text.get(name):
                return name
        return self.declare(f"{root}|{extent.text}", extent)

    def extent(self, dim: Dim) -> Number:
        """Return the extent of a dimension."""
        return product_of([Number(self.axis_text[axis], self.axis_size[axis], whole=True) for axis in dim])

    def number(self, value: Number) -> Node:
        """Return a number as a node."""
        return self.node("number", (), (), value)

    def elementwise(self, op: str, *args: Node) -> Node:
        """Return a function of nodes whose dimensions broadcast."""
        dims = args[0].dims
        for each in args[1:]:
            dims = broadcast(dims, each.dims)
        return self.node(op, args, dims)


def _unseen(op: str, args: Sequence[Node], dims: Sequence[Dim], extra: Any) -> tuple[str, ...]:
    """Return the axes of loops that a node changes along."""
    found = {axis: None for each in args for axis in each.unseen}
    if op == "view":
        found |= {axis: None for index in extra.indices for axis, *_ in index.terms}
    if op == "iota":
        found[extra] = None
    seen = {axis for dim in dims for axis in dim} | (set(extra[1]) if op == "reduce" else set())
    return tuple(axis for axis in found if axis not in seen)


def broadcast(left: tuple[Dim, ...], right: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Return the dimensions of an elementwise function of both.

    Raises:
        NotCoveredError: they do not fit.
    """
    rank = max(len(left), len(right))
    pairs = zip(((),) * (rank - len(left)) + left, ((),) * (rank - len(right)) + right, strict=True)
    result: list[Dim] = []
    for one, other in pairs:
        if one and other and one != other:
            raise NotCoveredError(f"dimensions {one} and {other} do not match by their names")
        result.append(one or other)
    return tuple(result)


def descendants(roots: Sequence[Node], stop: Callable[[Node], bool] = lambda node: False) -> Iterator[Node]:
    """Yield every node that ``roots`` are computed from, each once, arguments first; not below ``stop``."""
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        stack.append((node, True))
        if not stop(node):
            stack.extend((each, False) for each in reversed(node.args))


def at_zeros(node: Node, axis: str) -> float | None:
    """Return the value of a node where all tensors that have an axis are 0, if that decides it."""
    if node.op == "number":
        return float(node.extra.value) if node.extra.literal else None
    if node.op in ("input", "view"):
        return 0.0 if axis in node.axes else None
    values = [at_zeros(each, axis) for each in node.args]
    if node.op == "mul" and 0.0 in values:
        return 0.0
    if node.op == "as":
        return values[0]
    if node.op not in _FUNCTIONS or None in values:
        return None
    try:
        return float(_FUNCTIONS[node.op](*values))
    except (ArithmeticError, ValueError):
        return None


def computed(op: str, *numbers: Number) -> Number:
    """Return a function of numbers: a literal if all are, else an expression of the host.

    Raises:
        NotCoveredError: the host has no such function.
    """
    if op not in _FUNCTIONS:
        raise NotCoveredError(f"{op} of numbers")
    value = _FUNCTIONS[op](*(each.value for each in numbers))
    if all(each.literal for each in numbers):
        return Number.of(value)
    whole = all(each.whole for each in numbers) and op not in ("div", "sqrt", "exp", "log", "pow")
    texts = [each.text for each in numbers]
    if op in _SIGNS:
        text = f"({texts[0]} {_SIGNS[op]} {texts[1]})"
    elif op == "neg":
        text = f"(-{texts[0]})"
    elif op in ("pow", "sqrt", "max", "min"):
        text = f"{op}({', '.join(texts)})"
    else:
        raise NotCoveredError(f"{op} of an attribute")
    return Number(text, value, whole)


def product_of(numbers: Sequence[Number]) -> Number:
    """Return the product of numbers."""
    result = Number.of(1)
    for each in numbers:
        result = each if result.literal and result.value == 1 else computed("mul", result, each)
    return result
