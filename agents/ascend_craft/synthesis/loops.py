"""Loops of a reference: their turns, and what they add up."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from agents.ascend_craft.synthesis.graph import NotCoveredError, Number, computed

SHORT = 8
"""Turns up to which a loop is traced turn by turn."""

_UPDATES: dict[type[ast.operator], str] = {ast.Add: "sum", ast.Mult: "prod"}
_CALLS = {"maximum": "max", "minimum": "min", "add": "sum", "multiply": "prod"}


@dataclass(frozen=True)
class Turns:
    """A range: the number of the first turn, what is added from turn to turn, and how many there are."""

    start: Number
    step: Number
    count: Number

    @property
    def short(self) -> bool:
        """Whether it has few turns in every case."""
        literal = all(each.literal for each in (self.start, self.step, self.count))
        return literal and self.count.value <= SHORT

    def numbers(self) -> list[Number]:
        """Return the number of each turn.

        Raises:
            NotCoveredError: how many there are is not the same in every case.
        """
        if not all(each.literal for each in (self.start, self.step, self.count)):
            raise NotCoveredError("a loop of as many turns as a shape or an attribute says")
        turns = [Number.of(turn) for turn in range(int(self.count.value))]
        return [computed("add", self.start, computed("mul", each, self.step)) for each in turns]


def accumulation(statement: ast.stmt) -> tuple[str, str, ast.expr] | None:
    """Return name, kind and addend of a statement that only adds to a name, such as ``x += y``."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        kind = _UPDATES.get(type(statement.op))
        return (statement.target.id, kind, statement.value) if kind else None
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    name, value = statement.targets[0].id, statement.value
    if isinstance(value, ast.BinOp):
        kind, operands = _UPDATES.get(type(value.op)), [value.left, value.right]
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and len(value.args) == 2:
        kind, operands = _CALLS.get(value.func.attr), value.args
    else:
        return None
    own = [isinstance(each, ast.Name) and each.id == name for each in operands]
    others = [each for each, mine in zip(operands, own, strict=True) if not mine]
    if kind is None or len(others) != 1:
        return None
    if any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(others[0])):
        return None
    return name, kind, others[0]
