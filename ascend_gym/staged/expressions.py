"""Scalar expressions of a program: what they may hold."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from ascend_gym.staged.syntax import Alloc, StagedError, StagedKnob, Tensor

KERNEL_FUNCTIONS = {
    "min": (2, 8),
    "max": (2, 8),
    "core": (0, 0),
    "cores": (0, 0),
    "ceil_div": (2, 2),
    "align": (2, 2),
}
READ = {"read": (2, 2)}
HOST_FUNCTIONS = {
    "min": (2, 8),
    "max": (2, 8),
    "size": (1, 1),
    "dim": (2, 2),
    "ceil_div": (2, 2),
    "align": (2, 2),
    "vec_cores": (0, 0),
    "ub_bytes": (0, 0),
    "pow": (2, 2),
    "sqrt": (1, 1),
    "knob": (2, 3),
}
_EXPRESSIONS = (
    ast.Name,
    ast.Load,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.IfExp,
    ast.Call,
    ast.Constant,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.FloorDiv,
    ast.Mod,
    ast.LShift,
    ast.USub,
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
    ast.Eq,
    ast.NotEq,
)


@dataclass
class Names:
    """What the expressions of a program may name, as far as it has been read."""

    tensors: dict[str, Tensor] = field(default_factory=dict)
    buffers: dict[str, Alloc] = field(default_factory=dict)
    knobs: dict[str, StagedKnob] = field(default_factory=dict)

    def buffer(self, node: ast.expr) -> str:
        """Return the buffer that an expression names."""
        if not isinstance(node, ast.Name) or node.id not in self.buffers:
            raise StagedError(
                node.lineno,
                f"{ast.unparse(node)} is not a buffer; buffers are {', '.join(self.buffers) or 'none'}",
            )
        return node.id

    def check(self, node: ast.expr, functions: dict[str, tuple[int, int]]) -> None:
        """Check that a scalar expression holds nothing else than the language allows."""
        if isinstance(node, ast.Call):
            self._function_call(node, functions)
            return
        if isinstance(node, ast.Constant):
            limit = 2**62 if type(node.value) is int else 3.4028235e38
            if type(node.value) not in (int, float) or not abs(node.value) <= limit:  # type: ignore[arg-type]
                raise StagedError(node.lineno, f"{node.value!r} is not a number of the language")
            return
        if isinstance(node, ast.Name) and (node.id in self.buffers or node.id in self.tensors):
            raise StagedError(
                node.lineno, f"{node.id!r} is no number; read(B, i) gives one element of a buffer"
            )
        if not isinstance(node, _EXPRESSIONS):
            raise StagedError(
                getattr(node, "lineno", 0),
                f"{ast.unparse(node)} is not part of scalar expressions (+ - * / // % << compare min max)",
            )
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.check(child, functions)
            elif not isinstance(child, _EXPRESSIONS):
                raise StagedError(
                    node.lineno, f"{ast.unparse(node)}: {type(child).__name__} is not part of the language"
                )

    def _function_call(self, node: ast.Call, functions: dict[str, tuple[int, int]]) -> None:
        name = called(node)
        if name not in functions or node.keywords:
            hint = "; read(B, i) stands inside with compute()" if name == "read" else ""
            raise StagedError(
                node.lineno, f"no function {name or '?'} here; there are {', '.join(functions)}{hint}"
            )
        least, most = functions[name]
        if not least <= len(node.args) <= most:
            raise StagedError(node.lineno, f"{name} takes {least} to {most} arguments, got {len(node.args)}")
        if name == "knob":
            self._knob(node)
            return
        rest = node.args
        if name == "read":
            self.buffer(rest[0])
            rest = rest[1:]
        elif name in ("size", "dim"):
            if not isinstance(rest[0], ast.Name) or rest[0].id not in self.tensors:
                raise StagedError(node.lineno, f"{name} takes a tensor of the kernel first")
            rest = rest[1:]
        for argument in rest:
            self.check(argument, functions)

    def _knob(self, node: ast.Call) -> None:
        try:
            name, default, *rest = [ast.literal_eval(each) for each in node.args]
            choices = tuple(rest[0]) if rest else ()
            plain = isinstance(name, str) and name.isidentifier()
            plain = plain and all(type(each) is int and each > 0 for each in (default, *choices))
        except (ValueError, TypeError):
            plain = False
        if not plain:
            raise StagedError(
                node.lineno, 'expected knob("name", default, [choices]) of positive whole numbers'
            )
        if name in self.knobs:
            raise StagedError(node.lineno, f"knob {name!r} is there already")
        self.knobs[name] = StagedKnob(name, default, choices)


def functions_of(stage: str | None) -> dict[str, tuple[int, int]]:
    """Return the functions of a stage of the kernel, with the least and most arguments of each."""
    return {**KERNEL_FUNCTIONS, **READ} if stage == "compute" else KERNEL_FUNCTIONS


def called(node: ast.expr) -> str:
    """Return the name of the function that an expression calls, or nothing."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
