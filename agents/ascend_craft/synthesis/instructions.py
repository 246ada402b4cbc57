"""Turns nodes of the graph into vector instructions and scalar assignments of one compute stage.

A stage knows which values it has, in which buffers, and how often each is still used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from agents.ascend_craft.synthesis.formulas import FORMULAS, TEMPORARIES
from agents.ascend_craft.synthesis.graph import Node, NotCoveredError
from agents.ascend_craft.synthesis.places import Buffers, Mask, Place, ScalarPlace, Vector

_VECTOR = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "max": "vmax", "min": "vmin"}
_WITH_NUMBER = {"add": "adds", "mul": "muls", "max": "maxs", "min": "mins"}
_UNARY = {"exp": "exp", "log": "ln", "sqrt": "sqrt", "abs": "abs"}
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
NEUTRAL = {"sum": "0.0", "prod": "1.0", "max": "-3.4028234e38", "min": "3.4028234e38"}
COMBINE = {"sum": "add", "prod": "mul", "max": "vmax", "min": "vmin"}
COMPARISONS = frozenset(_COMPARE)


class Holding:
    """Places of nodes in one stage. A temporary of its own goes back after the last use of its value."""

    def __init__(self, buffers: Buffers, known: Mapping[int, Place]) -> None:
        """Begin with what has a place before the stage; nodes are looked up by identity."""
        self._buffers, self._known = buffers, dict(known)
        self._uses: Counter[int] = Counter()
        self._named: dict[int, Node] = {}  # what is only another name of a node with the same place
        self._own: set[str] = set()
        self._targets: dict[int, str] = {}

    def place(self, node: Node) -> Place:
        """Return where a node is."""
        return self._known[id(node)]

    def done(self, node: Node) -> None:
        """Count one use of a node, and take its buffer back after the last."""
        node = self._itself(node)
        self._uses[id(node)] -= 1
        place = self._known.get(id(node))
        if self._uses[id(node)] <= 0 and isinstance(place, (Vector, Mask)) and place.buffer in self._own:
            self._own.discard(place.buffer)
            self._buffers.give(place.buffer)

    def _itself(self, node: Node) -> Node:
        """Return the node whose uses count for one that is only another name of it."""
        while id(node) in self._named:
            node = self._named[id(node)]
        return node

    def keep(self, node: Node) -> Place:
        """Return the place of a node, which the caller takes over."""
        place = self.place(node)
        if isinstance(place, Vector):
            self._own.discard(place.buffer)
        return place

    def owns(self, name: str) -> bool:
        """Say whether a buffer is a temporary of this stage."""
        return name in self._own

    def _take(self, kind: str = "t") -> str:
        name = self._buffers.take(kind)
        self._own.add(name)
        return name

    def _drop(self, name: str) -> None:
        self._own.discard(name)
        self._buffers.give(name)

    def _dst(self, node: Node) -> str:
        return self._targets.get(id(node)) or self._take()

    def _operands(self, node: Node) -> list[Place]:
        return [self.place(each) for each in node.args]

    def _release(self, node: Node) -> None:
        for each in node.args:
            self.done(each)

    def _pass_target(self, node: Node, has_vector: Callable[[Node], bool]) -> None:
        """Have what is only another name of a value computed where that is wanted."""
        target = self._targets.get(id(node))
        if node.op != "as" or target is None:
            return
        (source,) = node.args
        computed = id(source) not in self._known and source.op not in ("input", "number", "pick", "reduce")
        if computed and self._uses[id(source)] == 1 and has_vector(source):
            self._targets[id(source)] = target


class StageWriter(Holding):
    """Writes the instructions of one compute stage.

    Args:
        buffers: of the program.
        known: what has a place before the stage; nodes are looked up by identity.
        numbers: text of a number's node.
        fresh: returns the name of a new scalar.
        count: elements of a vector.
        has_vector: whether a node has the vector axis.
    """

    def __init__(
        self,
        buffers: Buffers,
        known: Mapping[int, Place],
        numbers: Callable[[Node], str],
        fresh: Callable[[], str],
        count: str,
        has_vector: Callable[[Node], bool],
    ) -> None:
        super().__init__(buffers, known)
        self.lines: list[str] = []
        self._count = count
        self._numbers, self._fresh, self._has_vector = numbers, fresh, has_vector

    def compute(self, needed: Sequence[Node], goals: Sequence[Node], targets: Mapping[int, str]) -> None:
        """Write what computes ``needed``, which are in order, arguments first.

        Args:
            needed: nodes without a place yet.
            goals: nodes that are used after it; each as often as it is used.
            targets: buffers into which goals may be computed at once, by identity.
        """
        self._uses = Counter(id(arg) for node in needed for arg in node.args)
        self._uses.update(id(goal) for goal in goals)
        self._targets = {key: name for key, name in targets.items() if self._uses[key] == 1}
        for node in reversed(needed):
            self._pass_target(node, self._has_vector)
        for node in needed:
            self._known[id(node)] = self._emit(node)

    def vector(self, node: Node) -> str:
        """Return the buffer of a node, filled with its number if it has no vector axis."""
        place = self.place(node)
        if isinstance(place, Vector):
            return place.buffer
        if isinstance(place, ScalarPlace):
            buffer = self._take()
            self._say("fill", buffer, place.text)
            return buffer
        raise NotCoveredError("a comparison where a number is expected")

    def _say(self, op: str, dst: str, *operands: str, count: str | None = None) -> None:
        self.lines.append(f"{op}({', '.join([dst, *operands, count or self._count])})")

    def _emit(self, node: Node) -> Place:
        if node.op == "number":
            return ScalarPlace(self._numbers(node))
        if node.op == "as":
            return self._alias(node)
        if node.op == "reduce":
            return self._reduce(node)
        if not self._has_vector(node):
            return self._scalar(node)
        if node.op in COMPARISONS:
            return self._compare(node)
        if node.op == "where":
            return self._where(node)
        if node.op in _UNARY or node.op == "neg":
            return self._one(node)
        if node.op in FORMULAS:
            return self._composite(node)
        if node.op in _VECTOR:
            return self._two(node)
        raise NotCoveredError(f"the function {node.op}")

    def _alias(self, node: Node) -> Place:
        place = self.place(node.args[0])
        self._uses[id(self._itself(node.args[0]))] += self._uses[id(node)] - 1
        target = self._targets.get(id(node))
        if target is not None and isinstance(place, Vector) and place.buffer != target:
            self._say("copy", target, place.buffer)
            return Vector(target)
        self._named[id(node)] = node.args[0]
        return place

    def _one(self, node: Node) -> Place:
        (source,) = self._operands(node)
        assert isinstance(source, Vector)
        self._release(node)
        dst = self._dst(node)
        if node.op == "neg":
            self._say("muls", dst, source.buffer, "-1.0")
        else:
            self._say(_UNARY[node.op], dst, source.buffer)
        return Vector(dst)

    def _two(self, node: Node) -> Place:
        left, right = self._operands(node)
        if isinstance(left, ScalarPlace) and isinstance(right, Vector) and node.op in ("sub", "div"):
            return self._number_first(node, left.text, right.buffer)
        self._release(node)
        dst = self._dst(node)
        if isinstance(left, Vector) and isinstance(right, Vector):
            self._say(_VECTOR[node.op], dst, left.buffer, right.buffer)
            return Vector(dst)
        vector, number = (left, right) if isinstance(left, Vector) else (right, left)
        if not isinstance(vector, Vector) or not isinstance(number, ScalarPlace):
            raise NotCoveredError("arithmetic with the outcome of a comparison")
        if node.op == "sub":
            self._say("adds", dst, vector.buffer, f"-{number.text}")
        elif node.op == "div":
            self._say("muls", dst, vector.buffer, f"1.0 / {number.text}")
        else:
            self._say(_WITH_NUMBER[node.op], dst, vector.buffer, number.text)
        return Vector(dst)

    def _number_first(self, node: Node, number: str, source: str) -> Place:
        if node.op == "sub":
            self._release(node)
            dst = self._dst(node)
            self._say("muls", dst, source, "-1.0")
            self._say("adds", dst, dst, number)
            return Vector(dst)
        above = self._take()
        self._say("fill", above, number)
        self._release(node)
        dst = self._dst(node)
        self._say("div", dst, above, source)
        self._drop(above)
        return Vector(dst)

    def _compare(self, node: Node) -> Place:
        left, right = self._operands(node)
        dst = self._take("m")
        mode = node.op
        if isinstance(left, ScalarPlace):
            left, right, mode = right, left, _MIRRORED[mode]
        assert isinstance(left, Vector)
        if isinstance(right, Vector):
            self._say(f"compare_{mode}", dst, left.buffer, right.buffer)
        else:
            assert isinstance(right, ScalarPlace)
            self._say(f"compares_{mode}", dst, left.buffer, right.text)
        self._release(node)
        return Mask(dst)

    def _where(self, node: Node) -> Place:
        test, yes, no = self._operands(node)
        if isinstance(test, ScalarPlace):
            return self._either(node, test.text, yes, no)
        mask = test.buffer if isinstance(test, Mask) else self._take("m")
        if isinstance(test, Vector):
            self._say("compares_ne", mask, test.buffer, "0.0")
        if isinstance(yes, ScalarPlace):
            filled = self._take()
            self._say("fill", filled, yes.text)
            yes = Vector(filled)
        assert isinstance(yes, Vector)
        dst = self._targets.get(id(node)) or self._take()
        if isinstance(no, ScalarPlace):
            self._say("selects", dst, mask, yes.buffer, no.text)
        else:
            assert isinstance(no, Vector)
            self._say("select", dst, mask, yes.buffer, no.buffer)
        if isinstance(self.place(node.args[1]), ScalarPlace):
            self._drop(yes.buffer)
        if isinstance(test, Vector):
            self._drop(mask)
        self._release(node)
        return Vector(dst)

    def _either(self, node: Node, test: str, yes: Place, no: Place) -> Place:
        """Write a choice that is one for the whole vector."""
        dst = self._targets.get(id(node)) or self._take()
        for head, place in ((f"if {_as_condition(test)}:", yes), ("else:", no)):
            assert not isinstance(place, Mask)
            op, operand = ("copy", place.buffer) if isinstance(place, Vector) else ("fill", place.text)
            self.lines += [head, f"    {op}({dst}, {operand}, {self._count})"]
        self._release(node)
        return Vector(dst)

    def _composite(self, node: Node) -> Place:
        (source,) = self._operands(node)
        assert isinstance(source, Vector)
        dst = self._targets.get(id(node)) or self._take()
        self._compose(node.op, dst, source.buffer)
        self._release(node)
        return Vector(dst)

    def _compose(self, function: str, dst: str, x: str) -> None:
        """Write a function that no instruction has."""
        room = [self._take() for _ in range(TEMPORARIES[function])]
        for op, to, *operands in FORMULAS[function](dst, x, *room):
            self._say(op, to, *operands)
        for name in room:
            self._drop(name)

    def _reduce(self, node: Node) -> Place:
        """Reduce a vector that is all there to a number."""
        kind, _ = node.extra
        name = self.reduced(kind, self.vector(node.args[0]), self._count)
        self._release(node)
        return ScalarPlace(name)

    def reduced(self, kind: str, buffer: str, count: str) -> str:
        """Write the reduction of a buffer, and return the scalar that has it."""
        result = self._buffers.declare("result", "8", "f32")
        name = self._fresh()
        if kind == "prod":
            raise NotCoveredError("products along the last axis")
        work = self._buffers.declare("work", "tile // 4 + 128", "f32")
        self.lines.append(f"reduce_{kind}({result}, {buffer}, {work}, {count})")
        self.lines.append(f"{name} = read({result}, 0)")
        return name

    def _scalar(self, node: Node) -> Place:
        parts = []
        for each in node.args:
            place = self.place(each)
            if not isinstance(place, ScalarPlace):
                raise NotCoveredError("a number made of a vector")
            parts.append(place.text)
        text = _in_scalars(node.op, parts)
        if text is not None and node.op in COMPARISONS:
            return ScalarPlace(text)
        name = self._fresh()
        if text is None:
            self._function_of_number(node, parts[0], name)
        else:
            self.lines.append(f"{name} = {text}")
        return ScalarPlace(name)

    def _function_of_number(self, node: Node, number: str, name: str) -> None:
        if node.op not in _UNARY and node.op not in FORMULAS:
            raise NotCoveredError(f"the function {node.op}")
        count, self._count = self._count, "8"
        result = self._buffers.declare("result", "8", "f32")
        self._say("fill", result, number)
        if node.op in _UNARY:
            self._say(_UNARY[node.op], result, result)
        else:
            wide = self._take()
            self._compose(node.op, wide, result)
            self._say("copy", result, wide)
            self._drop(wide)
        self._count = count
        self.lines.append(f"{name} = read({result}, 0)")


def _in_scalars(op: str, parts: Sequence[str]) -> str | None:
    """Return an expression of the scalar unit, or ``None`` where only the vector unit has the function."""
    if op in COMPARISONS:
        return f"{parts[0]} {_COMPARE[op]} {parts[1]}"
    if op in _SIGNS:
        return f"{parts[0]} {_SIGNS[op]} {parts[1]}"
    if op == "neg":
        return f"-{parts[0]}"
    if op in ("max", "min"):
        return f"{op}({parts[0]}, {parts[1]})"
    if op == "where":
        return f"{parts[1]} if {_as_condition(parts[0])} else {parts[2]}"
    return None


def _as_condition(text: str) -> str:
    """Return a number as a condition; a comparison is one."""
    return text if any(f" {sign} " in text for sign in _COMPARE.values()) else f"{text} != 0.0"
