"""Reads the expressions of a reference: nodes, numbers, and what Python does with them."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents.ascend_craft.synthesis.arithmetic import OPPOSITE
from agents.ascend_craft.synthesis.graph import LOOP, Node, NotCoveredError, Number, product_of
from agents.ascend_craft.synthesis.loops import Turns, turns_of
from agents.ascend_craft.synthesis.numpy_calls import Function, NumpyCalls
from agents.ascend_craft.synthesis.ranking import Sorted
from agents.ascend_craft.synthesis.views import ONE, ZERO
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


def several(value: Any) -> tuple[Any, ...]:
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


class Expressions(NumpyCalls):
    """Walks the expressions of a reference."""

    def __init__(self) -> None:
        super().__init__()
        self._inputs: dict[str, Node] = {}
        self._attributes: Mapping[str, Any] = {}
        self._functions: dict[str, ast.FunctionDef] = {}
        self._left: set[str] = set()  # names that only turns of loops had

    def _body(self, body: Sequence[ast.stmt], names: dict[str, Any]) -> Any:
        """Walk statements, and return what they return; ``tracing`` does it."""
        raise NotImplementedError

    def _bind(self, target: ast.expr, value: Any, names: dict[str, Any]) -> None:
        """Give names, or parts of tensors, a value; ``tracing`` does it."""
        raise NotImplementedError

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
            return self._function(_FUNCTIONS[type(node.op)], [left, right], {})
        if type(node.op) not in _OPERATORS:
            raise NotCoveredError(f"the operator in {ast.unparse(node)}")
        return self._apply(_OPERATORS[type(node.op)], left, right)

    def _compared(self, node: ast.Compare, names: dict[str, Any]) -> Any:
        sides: list[Any] = [self._value(each, names) for each in (node.left, node.comparators[0])]
        if type(node.ops[0]) in (ast.Is, ast.IsNot):
            return (sides[0] is sides[1]) == isinstance(node.ops[0], ast.Is)
        if any(isinstance(each, (str, bool)) or each is None for each in sides):
            same = sides[0] == sides[1]
            return same if isinstance(node.ops[0], ast.Eq) else not same
        sides = [self._node(each) if _differs(each) else each for each in sides]
        if all(isinstance(each, Number) for each in sides):
            return _DECIDE[type(node.ops[0])](sides[0].value, sides[1].value)
        return self._apply(_COMPARISONS[type(node.ops[0])], *sides)

    def _turned(self, node: ast.GeneratorExp | ast.ListComp, names: dict[str, Any]) -> tuple[Any, ...]:
        """Return the values of a comprehension, turn by turn."""
        (loop,) = node.generators
        if loop.ifs:
            raise NotCoveredError("comprehensions with conditions")
        turns, inner, values = self._value(loop.iter, names), dict(names), []
        for value in turns.numbers() if isinstance(turns, Turns) else several(turns):
            self._bind(loop.target, value, inner)
            values.append(self._value(node.elt, inner))
        return tuple(values)

    def _signed(self, node: ast.UnaryOp, value: Any) -> Any:
        if isinstance(node.op, ast.USub):
            return self._apply("neg", value)
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Not) and not _differs(value) and isinstance(value, (bool, Number)):
            return not (value.value if isinstance(value, Number) else value)
        if isinstance(node.op, ast.Invert) and isinstance(value, Node):
            opposite = OPPOSITE.get(value.op)
            return (
                self._apply(opposite, *value.args) if opposite else self._apply("eq", value, Number.of(0.0))
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
            value = self._node(value)
        if isinstance(value, Sorted):
            return self._ranked(value, key if isinstance(key, tuple) else (key,))
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
            return self._np_transpose(self._value(node.value, names))
        if node.attr == "mT":
            return self._np_swapaxes(self._value(node.value, names), Number.of(-2), Number.of(-1))
        if isinstance(node.value, ast.Name) and node.value.id in names:
            value = names[node.value.id]
            value = self._node(value) if isinstance(value, Windows) else value
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
            return self._accumulated(name, *positional, **keywords)
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
        return self._function(name, positional, keywords)

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
                total = self._apply("add", total, each)
            return total
        found = values[0]
        for each in values[1:]:
            found = self._apply(name, found, each)
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
