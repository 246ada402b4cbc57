"""Reads the numpy reference of an operator, as text, into a graph; it is not executed."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.ascend_craft.synthesis.arithmetic import OPPOSITE, Sorted
from agents.ascend_craft.synthesis.graph import (
    LOOP,
    Dim,
    Graph,
    Node,
    NotCoveredError,
    Number,
    computed,
    product_of,
)
from agents.ascend_craft.synthesis.loops import Turns, accumulated, accumulation, turns_of
from agents.ascend_craft.synthesis.numpy_calls import Function, NumpyCalls, SplitNeededError
from agents.ascend_craft.synthesis.views import ONE, ZERO, simple
from agents.ascend_craft.synthesis.windows import Windows, strided

_FUNCTIONS: dict[type[ast.operator], str] = {
    ast.MatMult: "matmul",
    ast.BitAnd: "logical_and",
    ast.BitOr: "logical_or",
}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
_DECIDE: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_PYTHON = frozenset({"range", "len", "sum", "max", "min", "tuple", "list", "int"})

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


def _several(value: Any) -> tuple[Any, ...]:
    """Return the values of a tuple that is looped over.

    Raises:
        NotCoveredError: it is none.
    """
    if not isinstance(value, tuple):
        raise NotCoveredError("loops over something else than a range or a tuple")
    return value


def _differs(value: Any) -> bool:
    """Say whether a value is a number that differs from turn to turn of a loop."""
    return isinstance(value, Number) and LOOP in value.text


class _Tracer:
    """Traces one reference: walks its statements and their expressions."""

    def __init__(
        self,
        inputs: Sequence[TensorShape],
        outputs: Sequence[TensorShape],
        attributes: Mapping[str, Any],
        splits: Mapping[str, tuple[str, int]],
    ) -> None:
        self._graph, self._splits, self._attributes = Graph(), splits, attributes
        self._inputs = {each.name: self._input(each) for each in inputs}
        self._outputs = {each.name: self._dims(each) for each in outputs}
        self._functions: dict[str, ast.FunctionDef] = {}
        self._left: set[str] = set()  # names that only turns of loops had
        self._calls = NumpyCalls(self._graph, self._outputs)
        self._parts, self._arithmetic = self._calls.parts, self._calls.arithmetic
        self._rearranging, self._ranking = self._calls.rearranging, self._calls.ranking

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
            node = self._parts.unflipped(self._arithmetic.counting(self._arithmetic.node(value)), {})
            wanted = [dim for dim in self._outputs[name] if dim]
            found = [dim for dim in node.dims if dim]
            if found != wanted and len(found) == len(wanted) and self._is_split_short(found, wanted):
                node = self._parts.merged(node, node.dims.index(found[-1]), wanted[-1][0])
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
            old = self._arithmetic.node(names[target.value.id])
            value = self._arithmetic.counting(self._arithmetic.node(value))
            names[target.value.id] = self._parts.stored(old, key if isinstance(key, tuple) else (key,), value)
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
        for value in turns.numbers() if isinstance(turns, Turns) else _several(turns):
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
            self._add_up(name, kind, self._arithmetic.node(self._value(value, names)), axis, names)
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
            self._add_up(name, kind, self._arithmetic.node(inner_value), axis, names)

    def _add_up(self, name: str, kind: str, value: Node, axis: str, names: dict[str, Any]) -> None:
        op = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}[kind]
        if axis not in value.unseen:
            raise NotCoveredError("a loop whose turns do the same")
        reduced = self._graph.node("reduce", (value,), value.dims, (kind, (axis,)))
        names[name] = self._arithmetic.apply(op, names[name], reduced)

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

    def _decided(self, test: ast.expr, names: dict[str, Any]) -> bool:
        """Return what a condition comes to that numbers decide."""
        value = self._value(test, names)
        if isinstance(value, (Node, Windows)) or _differs(value):
            raise NotCoveredError(f"the condition {ast.unparse(test)}, which tensors decide")
        return bool(value.value) if isinstance(value, Number) else bool(value)

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
            return self._operated(node, self._value(node.left, names), self._value(node.right, names))
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand, names)
            return self._signed(node, value)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compared(node, names)
        if isinstance(node, ast.Slice):
            parts = (node.lower, node.upper, node.step)
            return slice(*(self._value(each, names) if each else None for each in parts))
        if isinstance(node, ast.IfExp):
            return self._value(node.body if self._decided(node.test, names) else node.orelse, names)
        if isinstance(node, ast.Lambda):
            return Function("lambda", node)
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
            return self._turned(node, names)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, names)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, names)
        if isinstance(node, ast.Call):
            return self._call(node, names)
        raise NotCoveredError(f"the expression {ast.unparse(node)}")

    def _operated(self, node: ast.BinOp | ast.AugAssign, left: Any, right: Any) -> Any:
        """Return what an operator makes of both its sides."""
        if type(node.op) in _FUNCTIONS:
            return self._calls.function(_FUNCTIONS[type(node.op)], [left, right], {})
        if type(node.op) not in _OPERATORS:
            raise NotCoveredError(f"the operator in {ast.unparse(node)}")
        return self._arithmetic.apply(_OPERATORS[type(node.op)], left, right)

    def _compared(self, node: ast.Compare, names: dict[str, Any]) -> Any:
        sides: list[Any] = [self._value(each, names) for each in (node.left, node.comparators[0])]
        if type(node.ops[0]) in (ast.Is, ast.IsNot):
            return (sides[0] is sides[1]) == isinstance(node.ops[0], ast.Is)
        if any(isinstance(each, (str, bool)) or each is None for each in sides):
            same = sides[0] == sides[1]
            return same if isinstance(node.ops[0], ast.Eq) else not same
        sides = [self._arithmetic.node(each) if _differs(each) else each for each in sides]
        if all(isinstance(each, Number) for each in sides):
            return _DECIDE[type(node.ops[0])](sides[0].value, sides[1].value)
        return self._arithmetic.apply(_COMPARISONS[type(node.ops[0])], *sides)

    def _turned(self, node: ast.GeneratorExp | ast.ListComp, names: dict[str, Any]) -> tuple[Any, ...]:
        """Return the values of a comprehension, turn by turn."""
        (loop,) = node.generators
        if loop.ifs:
            raise NotCoveredError("comprehensions with conditions")
        turns, inner, values = self._value(loop.iter, names), dict(names), []
        for value in turns.numbers() if isinstance(turns, Turns) else _several(turns):
            self._bind(loop.target, value, inner)
            values.append(self._value(node.elt, inner))
        return tuple(values)

    def _signed(self, node: ast.UnaryOp, value: Any) -> Any:
        if isinstance(node.op, ast.USub):
            return self._arithmetic.apply("neg", value)
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Not) and not _differs(value) and isinstance(value, (bool, Number)):
            return not (value.value if isinstance(value, Number) else value)
        if isinstance(node.op, ast.Invert) and isinstance(value, Node):
            opposite = OPPOSITE.get(value.op)
            return (
                self._arithmetic.apply(opposite, *value.args)
                if opposite
                else self._arithmetic.apply("eq", value, Number.of(0.0))
            )
        raise NotCoveredError(f"the expression {ast.unparse(node)}")

    def _name(self, name: str, names: dict[str, Any]) -> Any:
        if name in names:
            return names[name]
        if name in self._functions:
            return Function(name, self._functions[name])
        if name in self._left:
            raise NotCoveredError(f"{name}, which the last turn of a long loop leaves")
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
        if isinstance(value, Windows) and not value.viewed:
            value = self._arithmetic.node(value)
        if isinstance(value, Sorted):
            return self._ranking.ranked(value, key if isinstance(key, tuple) else (key,))
        if isinstance(value, Windows):
            return strided(value, key if isinstance(key, tuple) else (key,))
        if isinstance(value, Node):
            return self._parts.indexed(value, key if isinstance(key, tuple) else (key,))
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
            return self._rearranging.np_transpose(self._value(node.value, names))
        if node.attr == "mT":
            return self._rearranging.np_swapaxes(self._value(node.value, names), Number.of(-2), Number.of(-1))
        if isinstance(node.value, ast.Name) and node.value.id in names:
            value = names[node.value.id]
            value = self._arithmetic.node(value) if isinstance(value, Windows) else value
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
        if "out" in keywords or len(keywords) < len(node.keywords):
            raise NotCoveredError("functions with out= or **")
        if isinstance(function, ast.Attribute) and function.attr == "accumulate":
            name = self._value(function.value, names).name
            return self._calls.accumulated(name, *positional, **keywords)
        if isinstance(function, ast.Name) and function.id in _PYTHON and function.id not in names:
            if keywords:
                raise NotCoveredError(f"{function.id} with {', '.join(keywords)}=")
            return self._python(function.id, positional)
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
        return self._calls.function(name, positional, keywords)

    def _python(self, name: str, given: list[Any]) -> Any:
        """Return what a function of Python's own comes to."""
        if name == "range":
            start, stop = (ZERO, *given) if len(given) == 1 else given[:2]
            step = given[2] if len(given) > 2 else ONE
            return Turns(start, step, turns_of(start, stop, step))
        if name == "len":
            return (
                self._graph.extent(given[0].dims[0])
                if isinstance(given[0], Node)
                else Number.of(len(given[0]))
            )
        if name in ("tuple", "list"):
            return tuple(given[0])
        if name == "int":
            if not isinstance(given[0], Number) or not given[0].whole:
                raise NotCoveredError("int of what is not whole")
            return given[0]
        values = given[0] if len(given) == 1 and isinstance(given[0], tuple) else tuple(given)
        if name == "sum":
            total = given[1] if len(given) > 1 else Number.of(0.0)
            for each in given[0]:
                total = self._arithmetic.apply("add", total, each)
            return total
        found = values[0]
        for each in values[1:]:
            found = self._arithmetic.apply(name, found, each)
        return found

    def _is_value(self, node: ast.expr, names: dict[str, Any]) -> bool:
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        return not isinstance(root, ast.Name) or root.id in names

    def _inlined(self, definition: Any, positional: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        parameters = [argument.arg for argument in definition.args.args]
        defaults = definition.args.defaults
        kept = zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True)
        given = {name: self._value(value, {}) for name, value in kept}
        given |= dict(zip(parameters, positional, strict=False)) | dict(keywords)
        if set(given) != set(parameters):
            raise NotCoveredError(f"{ast.unparse(definition.args)} with other arguments")
        if isinstance(definition, ast.Lambda):
            return self._value(definition.body, given)
        return self._body(definition.body, given)
