"""Scalar expressions: their types, their values, and their C++."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ascend_gym.staged.syntax import StagedError

Env = dict[str, Any]
Value = Callable[[Env], Any]

_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("<", lambda a, b: a < b),
    ast.LtE: ("<=", lambda a, b: a <= b),
    ast.Gt: (">", lambda a, b: a > b),
    ast.GtE: (">=", lambda a, b: a >= b),
    ast.Eq: ("==", lambda a, b: a == b),
    ast.NotEq: ("!=", lambda a, b: a != b),
}
_CPP_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "/",
    ast.Mod: "%",
    ast.LShift: "<<",
}


def is_float(node: ast.expr, types: Mapping[str, bool], buffers: Mapping[str, bool]) -> bool:
    """Say whether an expression is a float (f32) rather than whole.

    Args:
        node: the expression.
        types: for each name, whether it is a float.
        buffers: for each buffer, whether its elements are floats.
    """
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float)
    if isinstance(node, ast.Name):
        return types.get(node.id, False)
    if isinstance(node, ast.BinOp):
        sides = is_float(node.left, types, buffers) or is_float(node.right, types, buffers)
        return isinstance(node.op, ast.Div) or sides
    if isinstance(node, ast.UnaryOp):
        return is_float(node.operand, types, buffers)
    if isinstance(node, ast.IfExp):
        return is_float(node.body, types, buffers) or is_float(node.orelse, types, buffers)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "read" and isinstance(node.args[0], ast.Name):
            return buffers.get(node.args[0].id, True)
        if node.func.id in ("pow", "sqrt"):
            return True
        if node.func.id in ("min", "max"):
            return any(is_float(each, types, buffers) for each in node.args)
    return False


def compiled(node: ast.expr, functions: Mapping[str, Callable[..., Any]]) -> Value:
    """Return what computes an expression in an environment: whole numbers as int, floats as float32.

    Args:
        node: the expression.
        functions: what calls mean; each takes the environment, then what ``compiled`` makes of its arguments.
    """
    if isinstance(node, ast.Constant):
        constant = node.value if isinstance(node.value, int) else np.float32(node.value)  # type: ignore[arg-type]
        return lambda env: constant
    if isinstance(node, ast.Name):
        return _variable(node)
    if isinstance(node, ast.BinOp):
        return _binary(node, compiled(node.left, functions), compiled(node.right, functions))
    if isinstance(node, ast.UnaryOp):
        inner = compiled(node.operand, functions)
        return lambda env: -inner(env)
    if isinstance(node, ast.Compare):
        sides = [compiled(each, functions) for each in (node.left, *node.comparators)]
        tests = [_COMPARE[type(each)][1] for each in node.ops]
        return lambda env: all(test(sides[k](env), sides[k + 1](env)) for k, test in enumerate(tests))
    if isinstance(node, ast.BoolOp):
        parts = [compiled(each, functions) for each in node.values]
        both = isinstance(node.op, ast.And)
        return lambda env: all(p(env) for p in parts) if both else any(p(env) for p in parts)
    if isinstance(node, ast.IfExp):
        test, body, other = (compiled(each, functions) for each in (node.test, node.body, node.orelse))
        return lambda env: body(env) if test(env) else other(env)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _call(node, node.func.id, functions)
    raise StagedError(getattr(node, "lineno", 0), f"{ast.unparse(node)} is not a scalar expression")


def _variable(node: ast.Name) -> Value:
    name, line = node.id, node.lineno

    def value(env: Env) -> Any:
        try:
            return env[name]
        except KeyError:
            raise StagedError(line, f"{name!r} is used before it has a value") from None

    return value


def _call(node: ast.Call, name: str, functions: Mapping[str, Callable[..., Any]]) -> Value:
    if name in functions:
        return functions[name](node)  # type: ignore[no-any-return]
    parts = [compiled(each, functions) for each in node.args]
    if name in ("min", "max"):
        choose: Callable[..., Any] = min if name == "min" else max
        return lambda env: choose(part(env) for part in parts)
    if name in ("pow", "sqrt"):
        exponent = parts[1] if name == "pow" else lambda env: 0.5
        return lambda env: np.float32(float(parts[0](env)) ** float(exponent(env)))
    one, other = parts
    divide = _checked_division(node.lineno)
    if name == "ceil_div":
        return lambda env: _ceil(one(env), other(env), divide)
    return lambda env: _ceil(one(env), other(env), divide) * other(env)


def _ceil(a: Any, b: Any, divide: Callable[[Any, Any], Any]) -> Any:
    divide(a, b)
    return -(-a // b)


def _checked_division(line: int) -> Callable[[Any, Any], Any]:
    def divide(a: Any, b: Any) -> Any:
        if b <= 0 or a < 0:
            raise StagedError(
                line, f"// and % take whole numbers, not negative, by a positive one; got {a}, {b}"
            )
        return a // b

    return divide


def _binary(node: ast.BinOp, left: Value, right: Value) -> Value:
    kind = type(node.op)
    divide = _checked_division(node.lineno)
    if kind is ast.Add:
        return lambda env: left(env) + right(env)
    if kind is ast.Sub:
        return lambda env: left(env) - right(env)
    if kind is ast.Mult:
        return lambda env: left(env) * right(env)
    if kind is ast.LShift:
        return lambda env: left(env) << right(env)
    if kind is ast.FloorDiv:
        return lambda env: divide(left(env), right(env))
    if kind is ast.Mod:
        return lambda env: left(env) - divide(left(env), right(env)) * right(env)
    return lambda env: np.float32(left(env)) / np.float32(right(env))


def cpp(
    node: ast.expr, types: Mapping[str, bool], buffers: Mapping[str, bool], names: Mapping[str, str]
) -> str:
    """Return an expression in C++.

    Args:
        node: the expression.
        types: for each name, whether it is a float.
        buffers: for each buffer, whether its elements are floats.
        names: what names and functions are called in C++; names stay as they are by default.
    """
    return _Printer(types, buffers, names).text(node)


class _Printer:
    def __init__(
        self, types: Mapping[str, bool], buffers: Mapping[str, bool], names: Mapping[str, str]
    ) -> None:
        self._types, self._buffers, self._names = types, buffers, names

    def text(self, node: ast.expr, parent: int = 0) -> str:
        """Return the text of a node, in parentheses where it binds less than ``parent``."""
        if isinstance(node, ast.Constant):
            return _number(node.value)
        if isinstance(node, ast.Name):
            return self._names.get(node.id, node.id)
        if isinstance(node, ast.UnaryOp):
            return _wrapped(f"-{self.text(node.operand, 7)}", 6, parent)
        if isinstance(node, ast.BinOp):
            return self._binary(node, parent)
        if isinstance(node, ast.Compare):
            pairs = zip((node.left, *node.comparators[:-1]), node.ops, node.comparators, strict=True)
            tests = [f"{self.text(a, 3)} {_COMPARE[type(op)][0]} {self.text(b, 3)}" for a, op, b in pairs]
            return _wrapped(" && ".join(tests), 2, parent)
        if isinstance(node, ast.BoolOp):
            joint = " && " if isinstance(node.op, ast.And) else " || "
            return "(" + joint.join(self.text(each, 2) for each in node.values) + ")"
        if isinstance(node, ast.IfExp):
            test, body, other = (self.text(each, 2) for each in (node.test, node.body, node.orelse))
            return f"({test} ? {body} : {other})"
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        return self._call(node, node.func.id)

    def _float(self, node: ast.expr) -> bool:
        return is_float(node, self._types, self._buffers)

    def _binary(self, node: ast.BinOp, parent: int) -> str:
        level = 4 if isinstance(node.op, (ast.Add, ast.Sub)) else 3 if isinstance(node.op, ast.LShift) else 5
        left, right = self.text(node.left, level), self.text(node.right, level + 1)
        if isinstance(node.op, ast.Div):
            left = left if self._float(node.left) else f"static_cast<float>({left})"
            right = right if self._float(node.right) else f"static_cast<float>({right})"
        return _wrapped(f"{left} {_CPP_OPERATORS[type(node.op)]} {right}", level, parent)

    def _call(self, node: ast.Call, name: str) -> str:
        if name == "read":
            buffer = node.args[0]
            assert isinstance(buffer, ast.Name)
            element = f"{self._names.get(buffer.id, buffer.id)}.GetValue({self.text(node.args[1])})"
            return element if self._buffers.get(buffer.id, True) else f"static_cast<int64_t>({element})"
        if name in ("size", "dim"):
            tensor = node.args[0]
            assert isinstance(tensor, ast.Name)
            return self._shape(tensor.id, node)
        if name in ("min", "max"):
            return self._extreme(node, name)
        if name == "knob":
            assert isinstance(node.args[0], ast.Constant)
            return knob_name(str(node.args[0].value))
        parts = [self.text(each) for each in node.args]
        if name in ("pow", "sqrt"):
            given = ", ".join(f"static_cast<double>({each})" for each in parts)
            return f"static_cast<float>(std::{name}({given}))"
        function = self._names.get(name, {"ceil_div": "CeilDiv", "align": "AlignUp"}.get(name, name))
        return function if function.endswith(")") else f"{function}({', '.join(parts)})"

    def _shape(self, tensor: str, node: ast.Call) -> str:
        shape = f"{self._names.get(tensor, tensor)}Shape"
        if len(node.args) == 1:
            return f"{shape}.GetShapeSize()"
        axis = ast.literal_eval(node.args[1])
        return f"{shape}.GetDim({axis})" if axis >= 0 else f"{shape}.GetDim({shape}.GetDimNum() - {-axis})"

    def _extreme(self, node: ast.Call, name: str) -> str:
        kind = "float" if any(self._float(each) for each in node.args) else "int64_t"
        result = self.text(node.args[0])
        for each in node.args[1:]:
            result = f"{'Min' if name == 'min' else 'Max'}Of<{kind}>({result}, {self.text(each)})"
        return result


def _wrapped(text: str, level: int, parent: int) -> str:
    return f"({text})" if level < parent else text


def _number(value: object) -> str:
    if isinstance(value, float):
        text = repr(float(np.float32(value))) if np.isfinite(np.float32(value)) else ""
        if not text:
            raise StagedError(0, f"{value!r} does not fit f32")
        return (
            f"{np.format_float_scientific(np.float32(value), unique=True)}f"
            if "e" in text
            else f"{np.float32(value)!s}f"
        )
    return str(value)


def knob_name(name: str) -> str:
    """Return the name of a knob's constant in C++."""
    return name.upper()
