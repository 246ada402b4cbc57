"""Turns nodes of the graph into vector instructions and scalar assignments of one compute stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agents.ascend_craft.synthesis.graph import Node, NotCoveredError

_VECTOR = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "max": "vmax", "min": "vmin"}
_WITH_NUMBER = {"add": "adds", "mul": "muls", "max": "maxs", "min": "mins"}
_UNARY = {"exp": "exp", "log": "ln", "sqrt": "sqrt", "abs": "abs"}
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
NEUTRAL = {"sum": "0.0", "prod": "1.0", "max": "-3.4028234e38", "min": "3.4028234e38"}
COMBINE = {"sum": "add", "prod": "mul", "max": "vmax", "min": "vmin"}
COMPARISONS = frozenset(_COMPARE)

# Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: |error| <= 1.5e-7
_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
_ERF_P = 0.3275911


@dataclass(frozen=True)
class Vector:
    """A value with the vector axis: the buffer that has it."""

    buffer: str


@dataclass(frozen=True)
class Scalar:
    """A value without it: the expression that gives it."""

    text: str


@dataclass(frozen=True)
class Mask:
    """The outcome of a comparison of vectors."""

    buffer: str


Place = Vector | Scalar | Mask


@dataclass
class Buffers:
    """Buffers of a program: what is allocated, and what of that is free.

    Attributes:
        tile: temporaries of the length of a tile; ``mask`` and ``small`` likewise.
    """

    sizes: dict[str, tuple[str, str]] = field(default_factory=dict)
    free: dict[str, list[str]] = field(default_factory=lambda: {"t": [], "m": [], "s": []})
    _count: Counter[str] = field(default_factory=Counter)

    def take(self, kind: str = "t") -> str:
        """Return a free buffer: ``t`` of a tile, ``m`` of its bits, ``s`` of eight elements."""
        if self.free[kind]:
            return self.free[kind].pop()
        name = f"{kind}{self._count[kind]}"
        self._count[kind] += 1
        self.declare(name, *{"t": ("tile", "f32"), "m": ("tile // 8", "u8"), "s": ("8", "f32")}[kind])
        return name

    def give(self, name: str) -> None:
        """Take a buffer back."""
        kind = name[0]
        if name[1:].isdigit() and name not in self.free[kind]:
            self.free[kind].append(name)
            self.free[kind].sort(reverse=True)

    def declare(self, name: str, size: str, dtype: str) -> str:
        """Note a buffer with a name of its own."""
        self.sizes.setdefault(name, (size, dtype))
        return name


class Stage:
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
        self.lines: list[str] = []
        self._buffers, self._known, self._count = buffers, dict(known), count
        self._numbers, self._fresh, self._has_vector = numbers, fresh, has_vector
        self._uses: Counter[int] = Counter()
        self._own: set[str] = set()
        self._targets: dict[int, str] = {}

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
            self._pass_target(node)
        for node in needed:
            self._known[id(node)] = self._emit(node)

    def _pass_target(self, node: Node) -> None:
        """Have what is only another name of a value computed where that is wanted."""
        target = self._targets.get(id(node))
        if node.op != "as" or target is None:
            return
        (source,) = node.args
        computed = id(source) not in self._known and source.op not in ("input", "number", "pick", "reduce")
        if computed and self._uses[id(source)] == 1 and self._has_vector(source):
            self._targets[id(source)] = target

    def place(self, node: Node) -> Place:
        """Return where a node is."""
        return self._known[id(node)]

    def vector(self, node: Node) -> str:
        """Return the buffer of a node, filled with its number if it has no vector axis."""
        place = self.place(node)
        if isinstance(place, Vector):
            return place.buffer
        if isinstance(place, Scalar):
            buffer = self._take()
            self._say("fill", buffer, place.text)
            return buffer
        raise NotCoveredError("a comparison where a number is expected")

    def done(self, node: Node) -> None:
        """Count one use of a node, and take its buffer back after the last."""
        self._uses[id(node)] -= 1
        place = self._known.get(id(node))
        if self._uses[id(node)] <= 0 and isinstance(place, (Vector, Mask)) and place.buffer in self._own:
            self._own.discard(place.buffer)
            self._buffers.give(place.buffer)

    def keep(self, node: Node) -> Place:
        """Return the place of a node, which the caller takes over."""
        place = self.place(node)
        if isinstance(place, Vector):
            self._own.discard(place.buffer)
        return place

    def give_back(self) -> None:
        """Take back all that the stage still has."""
        for name in sorted(self._own):
            self._buffers.give(name)
        self._own.clear()

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

    def _say(self, op: str, dst: str, *operands: str, count: str | None = None) -> None:
        self.lines.append(f"{op}({', '.join([dst, *operands, count or self._count])})")

    def _emit(self, node: Node) -> Place:
        if node.op == "number":
            return Scalar(self._numbers(node))
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
        if node.op in ("tanh", "erf"):
            return self._composite(node)
        if node.op in _VECTOR:
            return self._two(node)
        raise NotCoveredError(f"the function {node.op}")

    def _alias(self, node: Node) -> Place:
        place = self.place(node.args[0])
        self._uses[id(node.args[0])] += self._uses[id(node)] - 1
        target = self._targets.get(id(node))
        if target is not None and isinstance(place, Vector) and place.buffer != target:
            self._say("copy", target, place.buffer)
            return Vector(target)
        return place

    def _dst(self, node: Node) -> str:
        return self._targets.get(id(node)) or self._take()

    def _operands(self, node: Node) -> list[Place]:
        return [self.place(each) for each in node.args]

    def _release(self, node: Node) -> None:
        for each in node.args:
            self.done(each)

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
        if isinstance(left, Scalar) and isinstance(right, Vector) and node.op in ("sub", "div"):
            return self._number_first(node, left.text, right.buffer)
        self._release(node)
        dst = self._dst(node)
        if isinstance(left, Vector) and isinstance(right, Vector):
            self._say(_VECTOR[node.op], dst, left.buffer, right.buffer)
            return Vector(dst)
        vector, number = (left, right) if isinstance(left, Vector) else (right, left)
        if not isinstance(vector, Vector) or not isinstance(number, Scalar):
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
        if isinstance(left, Scalar):
            left, right, mode = right, left, _MIRRORED[mode]
        assert isinstance(left, Vector)
        if isinstance(right, Vector):
            self._say(f"compare_{mode}", dst, left.buffer, right.buffer)
        else:
            assert isinstance(right, Scalar)
            self._say(f"compares_{mode}", dst, left.buffer, right.text)
        self._release(node)
        return Mask(dst)

    def _where(self, node: Node) -> Place:
        test, yes, no = self._operands(node)
        if isinstance(test, Scalar):
            raise NotCoveredError("where with a condition that is one for the whole vector")
        mask = test.buffer if isinstance(test, Mask) else self._take("m")
        if isinstance(test, Vector):
            self._say("compares_ne", mask, test.buffer, "0.0")
        if isinstance(yes, Scalar):
            filled = self._take()
            self._say("fill", filled, yes.text)
            yes = Vector(filled)
        assert isinstance(yes, Vector)
        dst = self._targets.get(id(node)) or self._take()
        if isinstance(no, Scalar):
            self._say("selects", dst, mask, yes.buffer, no.text)
        else:
            assert isinstance(no, Vector)
            self._say("select", dst, mask, yes.buffer, no.buffer)
        if isinstance(self.place(node.args[1]), Scalar):
            self._drop(yes.buffer)
        if isinstance(test, Vector):
            self._drop(mask)
        self._release(node)
        return Vector(dst)

    def _composite(self, node: Node) -> Place:
        (source,) = self._operands(node)
        assert isinstance(source, Vector)
        dst = self._targets.get(id(node)) or self._take()
        (self._tanh if node.op == "tanh" else self._erf)(dst, source.buffer)
        self._release(node)
        return Vector(dst)

    def _tanh(self, dst: str, x: str) -> None:
        """1 - 2 / (exp(2 x) + 1): right at both ends, where exp overflows or vanishes."""
        below = self._take()
        self._say("muls", below, x, "2.0")
        self._say("exp", below, below)
        self._say("adds", below, below, "1.0")
        self._say("fill", dst, "-2.0")
        self._say("div", dst, dst, below)
        self._say("adds", dst, dst, "1.0")
        self._drop(below)

    def _erf(self, dst: str, x: str) -> None:
        size, t, sign = self._take(), self._take(), self._take()
        self._say("abs", size, x)
        self._say("maxs", size, size, "1.0e-30")
        self._say("div", sign, x, size)
        self._say("muls", t, size, repr(_ERF_P))
        self._say("adds", t, t, "1.0")
        self._say("fill", dst, "1.0")
        self._say("div", t, dst, t)
        self._say("muls", dst, t, repr(_ERF[4]))
        for factor in reversed(_ERF[:4]):
            self._say("adds", dst, dst, repr(factor))
            self._say("mul", dst, dst, t)
        self._say("mul", size, size, size)
        self._say("muls", size, size, "-1.0")
        self._say("exp", size, size)
        self._say("mul", dst, dst, size)
        self._say("muls", dst, dst, "-1.0")
        self._say("adds", dst, dst, "1.0")
        self._say("mul", dst, dst, sign)
        for name in (size, t, sign):
            self._drop(name)

    def _reduce(self, node: Node) -> Place:
        """Reduce a vector that is all there to a number."""
        kind, _ = node.extra
        name = self.reduced(kind, self.vector(node.args[0]), self._count)
        self._release(node)
        return Scalar(name)

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
            if not isinstance(place, Scalar):
                raise NotCoveredError("a number made of a vector")
            parts.append(place.text)
        if node.op in COMPARISONS:
            return Scalar(f"{parts[0]} {_COMPARE[node.op]} {parts[1]}")
        name = self._fresh()
        if node.op in _SIGNS:
            self.lines.append(f"{name} = {parts[0]} {_SIGNS[node.op]} {parts[1]}")
        elif node.op == "neg":
            self.lines.append(f"{name} = -{parts[0]}")
        elif node.op in ("max", "min"):
            self.lines.append(f"{name} = {node.op}({parts[0]}, {parts[1]})")
        elif node.op == "where":
            self.lines.append(f"{name} = {parts[1]} if {parts[0]} else {parts[2]}")
        else:
            self._function_of_number(node, parts[0], name)
        return Scalar(name)

    def _function_of_number(self, node: Node, number: str, name: str) -> None:
        if node.op not in _UNARY and node.op not in ("tanh", "erf"):
            raise NotCoveredError(f"the function {node.op}")
        count, self._count = self._count, "8"
        result = self._buffers.declare("result", "8", "f32")
        self._say("fill", result, number)
        if node.op in _UNARY:
            self._say(_UNARY[node.op], result, result)
        else:
            wide = self._take()
            (self._tanh if node.op == "tanh" else self._erf)(wide, result)
            self._say("copy", result, wide)
            self._drop(wide)
        self._count = count
        self.lines.append(f"{name} = read({result}, 0)")
