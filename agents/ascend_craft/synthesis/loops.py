"""Loops of a reference: their turns, and what they add up."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agents.ascend_craft.synthesis.graph import NotCoveredError, Number, computed
from agents.ascend_craft.synthesis.views import ONE, simple

SHORT = 8
"""Turns up to which a loop is traced turn by turn."""

_GO_ON = "a loop whose turns go on from one another, otherwise than adding up"
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


def turns_of(start: Number, stop: Number, step: Number) -> Number:
    """Return how many numbers there are from one to before another.

    Raises:
        NotCoveredError: an attribute decides whether they go down.
    """
    if step.value == 0 or (step.value < 0 and not step.literal):
        raise NotCoveredError("steps that are 0, or negative because an attribute says so")
    if step.value < 0:
        start, stop, step = stop, start, computed("neg", step)
    extent = simple(computed("sub", stop, start))
    if step == ONE:
        return extent
    above = computed("sub", computed("add", extent, step), ONE)
    return simple(computed("floordiv", simple(above), step))


def accumulated(body: Sequence[ast.stmt], kept: Collection[str]) -> dict[str, str]:
    """Return the names that turns of a loop add to, with the kind of each, nested loops included.

    Args:
        body: the statements of a turn.
        kept: names that have a value before the loop.

    Raises:
        NotCoveredError: a turn does something else with what those before it left.
    """
    kinds: dict[str, str] = {}
    own: set[int] = set()
    nodes = [each for statement in body for each in ast.walk(statement)]
    for each in nodes:
        found = accumulation(each) if isinstance(each, ast.stmt) else None
        if found and found[0] in kept:
            name, kind, value = found
            if kinds.setdefault(name, kind) != kind:
                raise NotCoveredError(_GO_ON)
            own |= _named(each, name) - _named(value, name)
    turned = {id(each.target) for each in nodes if isinstance(each, ast.For)}
    for each in nodes:
        whole = each.value if isinstance(each, ast.Subscript) else each
        if not isinstance(whole, ast.Name) or id(whole) in own:
            continue
        stored = isinstance(each, (ast.Name, ast.Subscript)) and isinstance(each.ctx, ast.Store)
        if whole.id in kinds or (whole.id in kept and stored and id(each) not in turned):
            raise NotCoveredError(_GO_ON)
    return kinds


def _named(node: ast.AST, name: str) -> set[int]:
    return {id(each) for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == name}


def accumulation(statement: ast.stmt) -> tuple[str, str, ast.expr] | None:
    """Return name, kind and addend of a statement that only adds to a name, such as ``x += y``."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        kind = _UPDATES.get(type(statement.op))
        return (statement.target.id, kind, statement.value) if kind else None
    if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
        return None
    if not isinstance(statement.targets[0], ast.Name):
        return None
    name, value = statement.targets[0].id, statement.value
    if isinstance(value, ast.BinOp):
        kind, operands = _UPDATES.get(type(value.op)), [value.left, value.right]
    elif (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and len(value.args) == 2
        and not value.keywords
    ):
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
