"""Reads the statements of a reference: assignments, conditions, and loops that are short or add up."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from typing import Any

from agents.ascend_craft.synthesis.expressions import OPERATORS, Expressions, several
from agents.ascend_craft.synthesis.graph import Node, NotCoveredError, Number, computed
from agents.ascend_craft.synthesis.loops import Turns, accumulation
from agents.ascend_craft.synthesis.numpy_calls import Function
from agents.ascend_craft.synthesis.slicing import LOOP
from agents.ascend_craft.synthesis.views import simple
from agents.ascend_craft.synthesis.windows import Windows

_MOST_TURNS = 32


class Statements(Expressions):
    """Walks assignments, loops and conditions."""

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
                op = OPERATORS.get(type(statement.op), type(statement.op).__name__)
                names[statement.target.id] = self._apply(op, names[statement.target.id], value)
            elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Subscript):
                op = OPERATORS.get(type(statement.op), type(statement.op).__name__)
                value = self._apply(
                    op, self._value(statement.target, names), self._value(statement.value, names)
                )
                self._bind(statement.target, value, names)
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
            value = self._node(value) if isinstance(value, Windows) else value
            names[target.value.id] = self._stored(old, key if isinstance(key, tuple) else (key,), value)
        else:
            raise NotCoveredError(f"the assignment to {ast.unparse(target)}")

    def _while(self, statement: ast.While, names: dict[str, Any]) -> None:
        """Trace a loop whose end numbers decide, turn by turn."""
        for _ in range(_MOST_TURNS):
            if not self._decided(statement.test, names):
                return
            if self._body(statement.body, names) is not None:
                raise NotCoveredError("a return within a loop")
        raise NotCoveredError(f"a loop of more than {_MOST_TURNS} turns, each written out")

    def _loop(self, statement: ast.For, names: dict[str, Any]) -> None:
        """Trace a loop: turn by turn if it is short, else as a reduction over its turns."""
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
        axis = f"{LOOP}{len(self._graph.axis_size)}"
        self._graph.axis_size[axis], self._graph.axis_text[axis] = int(turns.count.value), turns.count.text
        turn = computed("mul", Number(axis, 0, whole=True), turns.step)
        before = set(names) - {statement.target.id}
        names[statement.target.id] = simple(computed("add", turn, turns.start))
        for each in statement.body:
            update = accumulation(each)
            if update is None or update[0] not in before:
                if isinstance(each, ast.For) or not isinstance(each, ast.Assign):
                    if not isinstance(each, ast.For):
                        raise NotCoveredError("a loop that does more than add up")
                    self._loop_within(each, names, axis, before)
                    continue
                if not isinstance(each.targets[0], ast.Name) or each.targets[0].id in before:
                    raise NotCoveredError(
                        "a loop whose turns go on from one another, otherwise than adding up"
                    )
                self._body([each], names)
                continue
            name, kind, value = update
            self._add_up(name, kind, self._node(self._value(value, names)), axis, names)

    def _loop_within(self, inner: ast.For, names: dict[str, Any], axis: str, before: set[str]) -> None:
        """Trace a loop in a loop: what it adds to is reduced over the turns of both."""
        kept = {name: names[name] for name in before if isinstance(names[name], (Node, Number))}
        updated = {
            found[0]: found[1]
            for each in ast.walk(inner)
            if isinstance(each, ast.stmt)
            for found in [accumulation(each)]
            if found and found[0] in before
        }
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
