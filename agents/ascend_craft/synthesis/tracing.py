"""Reads the numpy reference of an operator, as text, into a graph; it is not executed."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.ascend_craft.synthesis.expressions import Expressions, several
from agents.ascend_craft.synthesis.graph import LOOP, Dim, Graph, Node, NotCoveredError, Number, computed
from agents.ascend_craft.synthesis.loops import Turns, accumulated, accumulation
from agents.ascend_craft.synthesis.numpy_calls import Function, SplitNeededError
from agents.ascend_craft.synthesis.views import simple

_MOST_CUTS = 8
_FEW = 16
"""Elements that a row is made of at a time, such as pairs, to be joined."""
_MOST_TURNS = 32


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


class _Tracer(Expressions):
    """Traces one reference: walks assignments, loops and conditions."""

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
            lengths = [[self._graph.extent(dim).value for dim in dims] for dims in (found, wanted)]
            once = len({axis for dim in found for axis in dim}) == sum(map(len, found))
            if found != wanted and (lengths[0] != lengths[1] or not once):
                raise NotCoveredError(
                    f"output {name} has the axes {node.axes}, the specification says {wanted}"
                )
            dims = self._outputs[name] if found == wanted else found
            self._graph.outputs[name] = self._graph.node("as", (node,), dims)
        return self._graph

    def _body(self, body: Sequence[ast.stmt], names: dict[str, Any]) -> Any:
        for statement in body:
            if isinstance(statement, ast.Return):
                return self._value(statement.value, names) if statement.value else None
            if isinstance(statement, ast.Assign):
                value = self._value(statement.value, names)
                for target in statement.targets:
                    self._bind(target, value, names)
            elif isinstance(statement, ast.AugAssign):
                value = self._value(statement.value, names)
                old = self._value(statement.target, names)
                self._bind(statement.target, self._operated(statement, old, value), names)
            elif isinstance(statement, ast.FunctionDef):
                names[statement.name] = Function(statement.name, statement)
            elif isinstance(statement, ast.For):
                self._loop(statement, names)
            elif isinstance(statement, ast.While):
                self._while(statement, names)
            elif isinstance(statement, ast.If):
                taken = statement.body if self._decided(statement.test, names) else statement.orelse
                result = self._body(taken, names)
                if result is not None:
                    return result
            elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                raise NotCoveredError(f"the statement {ast.unparse(statement).splitlines()[0]!r}")
        return None

    def _bind(self, target: ast.expr, value: Any, names: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = value
        elif isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(value) == len(target.elts):
            for each, part in zip(target.elts, value, strict=True):
                self._bind(each, part, names)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            key = self._value(target.slice, names)
            old = self._node(names[target.value.id])
            value = self._counting(self._node(value))
            names[target.value.id] = self._stored(old, key if isinstance(key, tuple) else (key,), value)
        else:
            raise NotCoveredError(f"the assignment to {ast.unparse(target)}")

    def _while(self, statement: ast.While, names: dict[str, Any]) -> None:
        """Trace a loop whose end numbers decide, turn by turn."""
        if statement.orelse:
            raise NotCoveredError("a loop with else")
        for _ in range(_MOST_TURNS):
            if not self._decided(statement.test, names):
                return
            if self._body(statement.body, names) is not None:
                raise NotCoveredError("a return within a loop")
        raise NotCoveredError(f"a loop of more than {_MOST_TURNS} turns, each written out")

    def _loop(self, statement: ast.For, names: dict[str, Any]) -> None:
        """Trace a loop: turn by turn if it is short, else as a reduction over its turns."""
        if statement.orelse:
            raise NotCoveredError("a loop with else")
        turns = self._value(statement.iter, names)
        if isinstance(turns, Turns) and not turns.short:
            self._accumulating(statement, turns, names)
            return
        for value in turns.numbers() if isinstance(turns, Turns) else several(turns):
            self._bind(statement.target, value, names)
            if self._body(statement.body, names) is not None:
                raise NotCoveredError("a return within a loop")

    def _accumulating(self, statement: ast.For, turns: Turns, names: dict[str, Any]) -> None:
        """Trace a loop whose turns only add to what there was before: a reduction over them."""
        if not isinstance(statement.target, ast.Name):
            raise NotCoveredError(f"the loop {ast.unparse(statement).splitlines()[0]!r}")
        axis = self._graph.declare(f"{LOOP}{len(self._graph.axis_size)}", turns.count)
        turn = computed("mul", Number(axis, 0, whole=True), turns.step)
        before = set(names) - {statement.target.id}
        accumulated(statement.body, before)
        names[statement.target.id] = simple(computed("add", turn, turns.start))
        for each in statement.body:
            update = accumulation(each)
            if update is None or update[0] not in before:
                if isinstance(each, ast.For):
                    self._loop_within(each, names, axis, before)
                elif isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
                    self._body([each], names)
                else:
                    raise NotCoveredError("a loop that does more than add up")
                continue
            name, kind, value = update
            self._add_up(name, kind, self._node(self._value(value, names)), axis, names)
        for name in set(names) - before:
            self._left.add(name)
            del names[name]

    def _loop_within(self, inner: ast.For, names: dict[str, Any], axis: str, before: set[str]) -> None:
        """Trace a loop in a loop: what it adds to is reduced over the turns of both."""
        updated = accumulated(inner.body, before)
        kept = {name: names[name] for name in updated}
        neutral = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
        names |= {name: Number.of(neutral[kind]) for name, kind in updated.items()}
        self._loop(inner, names)
        for name, kind in updated.items():
            inner_value, names[name] = names[name], kept[name]
            self._add_up(name, kind, self._node(inner_value), axis, names)

    def _add_up(self, name: str, kind: str, value: Node, axis: str, names: dict[str, Any]) -> None:
        op = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}[kind]
        if axis not in value.unseen:
            raise NotCoveredError("a loop whose turns do the same")
        reduced = self._graph.node("reduce", (value,), value.dims, (kind, (axis,)))
        names[name] = self._apply(op, names[name], reduced)

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
