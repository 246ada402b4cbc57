"""Reads the numpy reference of an operator, as text, into a graph; it is not executed."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.ascend_craft.synthesis.graph import Dim, Graph, Node, NotCoveredError, Number, product_of
from agents.ascend_craft.synthesis.numpy_calls import Function, NumpyCalls, SplitNeededError
from agents.ascend_craft.synthesis.windows import Windows, strided

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.FloorDiv: "floordiv",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


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
    for _ in range(4):
        try:
            return _Tracer(inputs, outputs, attributes, splits).run(source)
        except SplitNeededError as split:
            splits[split.axis] = (split.outer, split.outer_size)
    raise NotCoveredError("reshapes that cut axes more than once")


class _Tracer(NumpyCalls):
    """Walks the statements and expressions of a reference."""

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
            node = self._node(value)
            wanted = [dim for dim in self._outputs[name] if dim]
            if [dim for dim in node.dims if dim] != wanted:
                raise NotCoveredError(
                    f"output {name} has the axes {node.axes}, the specification says {wanted}"
                )
            self._graph.outputs[name] = self._graph.node("as", (node,), self._outputs[name])
        return self._graph

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
        return parts

    def _body(self, body: Sequence[ast.stmt], names: dict[str, Any]) -> Any:
        for statement in body:
            if isinstance(statement, ast.Return):
                return self._value(statement.value, names) if statement.value else None
            if isinstance(statement, ast.Assign):
                value = self._value(statement.value, names)
                for target in statement.targets:
                    self._bind(target, value, names)
            elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                value = self._value(statement.value, names)
                op = _OPERATORS.get(type(statement.op), type(statement.op).__name__)
                names[statement.target.id] = self._apply(op, names[statement.target.id], value)
            elif isinstance(statement, ast.FunctionDef):
                names[statement.name] = Function(statement.name, statement)
            elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                raise NotCoveredError(f"the statement {ast.unparse(statement).splitlines()[0]!r}")
        return None

    def _bind(self, target: ast.expr, value: Any, names: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = value
        elif isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(value) == len(target.elts):
            for each, part in zip(target.elts, value, strict=True):
                self._bind(each, part, names)
        else:
            raise NotCoveredError(f"the assignment to {ast.unparse(target)}")

    def _value(self, node: ast.expr, names: dict[str, Any]) -> Any:
        if isinstance(node, ast.Constant):
            plain = isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
            return Number.of(node.value) if plain else node.value  # type: ignore[arg-type]
        if isinstance(node, ast.Name):
            return self._name(node.id, names)
        if isinstance(node, (ast.Tuple, ast.List)):
            return tuple(self._value(each, names) for each in node.elts)
        if isinstance(node, ast.Dict):
            return {
                ast.literal_eval(k): self._value(v, names)
                for k, v in zip(node.keys, node.values, strict=True)
                if k
            }
        if isinstance(node, ast.BinOp):
            op = _OPERATORS.get(type(node.op))
            if op is None:
                raise NotCoveredError(f"the operator in {ast.unparse(node)}")
            return self._apply(op, self._value(node.left, names), self._value(node.right, names))
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand, names)
            return self._signed(node, value)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            sides = self._value(node.left, names), self._value(node.comparators[0], names)
            return self._apply(_COMPARISONS[type(node.ops[0])], *sides)
        if isinstance(node, ast.Slice):
            step = self._value(node.step, names) if node.step else None
            if node.lower or node.upper:
                raise NotCoveredError(f"the slice {ast.unparse(node)}")
            return slice(None, None, step)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, names)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, names)
        if isinstance(node, ast.Call):
            return self._call(node, names)
        raise NotCoveredError(f"the expression {ast.unparse(node)}")

    def _signed(self, node: ast.UnaryOp, value: Any) -> Any:
        if isinstance(node.op, ast.USub):
            return self._apply("neg", value)
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Invert) and isinstance(value, Node):
            opposite = _OPPOSITE.get(value.op)
            return (
                self._apply(opposite, *value.args) if opposite else self._apply("eq", value, Number.of(0.0))
            )
        raise NotCoveredError(f"the expression {ast.unparse(node)}")

    def _name(self, name: str, names: dict[str, Any]) -> Any:
        if name in names:
            return names[name]
        if name in self._functions:
            return Function(name, self._functions[name])
        return Function(name)

    def _subscript(self, node: ast.Subscript, names: dict[str, Any]) -> Any:
        value = self._value(node.value, names)
        key = self._value(node.slice, names)
        if value == "inputs":
            return self._inputs[key]
        if value == "attributes":
            return self._attribute_number(key)
        if isinstance(value, tuple) and isinstance(key, Number):
            return value[int(key.value)]
        if isinstance(value, Windows):
            return strided(value, key if isinstance(key, tuple) else (key,))
        if isinstance(value, Node):
            return self._indexed(value, key if isinstance(key, tuple) else (key,))
        raise NotCoveredError(f"the index in {ast.unparse(node)}")

    def _attribute_number(self, name: str) -> Number:
        value = self._attributes.get(name)
        if not isinstance(value, (int, float)):
            raise NotCoveredError(f"the attribute {name!r}, which is {value!r}")
        return Number(name, value, whole=isinstance(value, int))

    def _attribute(self, node: ast.Attribute, names: dict[str, Any]) -> Any:
        if node.attr == "pi":
            return Number.of(math.pi)
        if node.attr == "e":
            return Number.of(math.e)
        if node.attr == "inf":
            return Number.of(math.inf)
        if node.attr == "newaxis":
            return None
        if node.attr == "T":
            raise NotCoveredError("transposes")
        if isinstance(node.value, ast.Name) and node.value.id in names:
            value = names[node.value.id]
            if isinstance(value, Node) and node.attr == "shape":
                return tuple(self._graph.extent(dim) for dim in value.dims)
            if isinstance(value, Node) and node.attr == "size":
                return product_of([self._graph.extent(dim) for dim in value.dims])
            if isinstance(value, Node) and node.attr == "ndim":
                return Number.of(len(value.dims))
        return Function(node.attr)

    def _call(self, node: ast.Call, names: dict[str, Any]) -> Any:
        function = node.func
        positional = [self._value(each, names) for each in node.args]
        keywords = {each.arg: self._value(each.value, names) for each in node.keywords if each.arg}
        if "out" in keywords:
            raise NotCoveredError("functions with out=")
        if isinstance(function, ast.Attribute) and function.attr == "accumulate":
            name = self._value(function.value, names).name
            return self._accumulated(name, *positional, **keywords)
        if isinstance(function, ast.Attribute):
            name = function.attr
            owner = self._value(function.value, names) if self._is_value(function.value, names) else None
            if isinstance(owner, (Node, Windows, Number)):
                positional = [owner, *positional]
        elif isinstance(function, ast.Name):
            known = self._name(function.id, names)
            name = known.name if isinstance(known, Function) else function.id
            if isinstance(known, Function) and known.definition is not None:
                return self._inlined(known.definition, positional, keywords)
        else:
            raise NotCoveredError(f"the call {ast.unparse(node)}")
        return self._function(name, positional, keywords)

    def _is_value(self, node: ast.expr, names: dict[str, Any]) -> bool:
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        return not isinstance(root, ast.Name) or root.id in names

    def _inlined(self, definition: Any, positional: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        parameters = [argument.arg for argument in definition.args.args]
        given = dict(zip(parameters, positional, strict=False)) | dict(keywords)
        if set(given) != set(parameters):
            raise NotCoveredError(f"{definition.name} with default arguments")
        return self._body(definition.body, given)
