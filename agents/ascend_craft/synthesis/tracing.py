"""Reads the numpy reference of an operator, as text, into a graph; it is not executed."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.ascend_craft.synthesis.graph import Dim, Graph, Node, NotCoveredError
from agents.ascend_craft.synthesis.numpy_calls import SplitNeededError
from agents.ascend_craft.synthesis.statements import Statements

_MOST_CUTS = 8
_FEW = 16
"""Elements that a row is made of at a time, such as pairs, to be joined."""


@dataclass(frozen=True)
class TensorShape:
    """A tensor of the specification: its name, and each extent as text with its value in the first case."""

    name: str
    extents: tuple[str, ...]
    sizes: tuple[int, ...]


def trace(
    source: str, inputs: Sequence[TensorShape], outputs: Sequence[TensorShape], attributes: Mapping[str, Any]
) -> Graph:
    """Return the graph of a reference.

    Args:
        source: text of ``reference.py``.
        inputs: inputs with their symbolic shapes.
        outputs: outputs, likewise.
        attributes: attributes of the first case.

    Raises:
        NotCoveredError: it does something that the rules do not know.
    """
    splits: dict[str, tuple[str, int]] = {}
    for _ in range(_MOST_CUTS):
        try:
            return _Tracer(inputs, outputs, attributes, splits).run(source)
        except SplitNeededError as split:
            splits[split.axis] = (split.outer, split.outer_size)
    raise NotCoveredError("reshapes that cut axes many times")


class _Tracer(Statements):
    """Traces one reference."""

    def __init__(
        self,
        inputs: Sequence[TensorShape],
        outputs: Sequence[TensorShape],
        attributes: Mapping[str, Any],
        splits: Mapping[str, tuple[str, int]],
    ) -> None:
        super().__init__()
        self._splits, self._attributes = splits, attributes
        self._inputs = {each.name: self._input(each) for each in inputs}
        self._outputs = {each.name: self._dims(each) for each in outputs}
        self._functions: dict[str, ast.FunctionDef] = {}

    def run(self, source: str) -> Graph:
        """Trace the function ``reference`` of a module."""
        try:
            module = ast.parse(source)
        except SyntaxError as error:
            raise NotCoveredError(f"the reference is not Python: {error}") from error
        self._functions = {each.name: each for each in module.body if isinstance(each, ast.FunctionDef)}
        main = self._functions.get("reference")
        if main is None:
            raise NotCoveredError("there is no function reference(inputs, attributes)")
        names = [argument.arg for argument in main.args.args]
        result = self._body(main.body, {names[0]: "inputs", names[1]: "attributes"})
        if not isinstance(result, dict) or set(result) != set(self._outputs):
            raise NotCoveredError("the reference does not return a dict of the outputs")
        for name, value in result.items():
            node = self._unflipped(self._counting(self._node(value)), {})
            wanted = [dim for dim in self._outputs[name] if dim]
            found = [dim for dim in node.dims if dim]
            if found != wanted and len(found) == len(wanted) and self._is_split_short(found, wanted):
                node = self._merged(node, node.dims.index(found[-1]), wanted[-1][0])
                found = [dim for dim in node.dims if dim]
            if found == wanted:
                self._graph.outputs[name] = self._graph.node("as", (node,), self._outputs[name])
                continue
            if [self._graph.extent(dim).value for dim in found] != [
                self._graph.extent(dim).value for dim in wanted
            ] or len({axis for dim in found for axis in dim}) != sum(map(len, found)):
                raise NotCoveredError(
                    f"output {name} has the axes {node.axes}, the specification says {wanted}"
                )
            self._graph.outputs[name] = self._graph.node("as", (node,), found)
        return self._graph

    def _is_split_short(self, found: Sequence[Dim], wanted: Sequence[Dim]) -> bool:
        """Say whether rows are made of a few elements at a time, such as pairs."""
        short = len(found[-1]) == 2 and self._graph.axis_size[found[-1][1]] <= _FEW
        return short and len(wanted[-1]) == 1

    def _input(self, tensor: TensorShape) -> Node:
        return self._graph.node("input", (), self._dims(tensor), tensor.name)

    def _dims(self, tensor: TensorShape) -> tuple[Dim, ...]:
        dims: list[Dim] = []
        used: set[str] = set()
        for place, (text, size) in enumerate(zip(tensor.extents, tensor.sizes, strict=True)):
            if text == "1":
                dims.append(())
                continue
            axis = text if text not in used else f"{text}'"
            used.add(axis)
            if axis not in self._graph.axis_size:
                self._graph.axis_size[axis] = size
                self._graph.axis_text[axis] = f"dim({tensor.name}, {place})"
            dims.append(self._split(axis))
        return tuple(dims)

    def _split(self, axis: str) -> Dim:
        if axis not in self._splits:
            return (axis,)
        outer_text, outer = self._splits[axis]
        parts = (f"{axis}:outer", f"{axis}:inner")
        graph = self._graph
        graph.axis_size |= {parts[0]: outer, parts[1]: graph.axis_size[axis] // outer}
        graph.axis_text |= {parts[0]: outer_text, parts[1]: f"({graph.axis_text[axis]} // {outer_text})"}
        return (*self._split(parts[0]), *self._split(parts[1]))
