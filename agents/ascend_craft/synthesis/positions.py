"""The compute stage of one position of the loops.

Running sums and products go along the vector axis by instructions on whole tiles: every element takes in the
one that lies 1, 2, 4 .. before it (behind it, from the end), so that a tile of n elements takes log2(n) steps
(Hillis and Steele, Data Parallel Algorithms, CACM 29(12), 1986). The first three steps cross blocks of 32
bytes and gather; all others add from a boundary on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agents.ascend_craft.synthesis.graph import Node, NotCoveredError, descendants
from agents.ascend_craft.synthesis.instructions import COMBINE, NEUTRAL
from agents.ascend_craft.synthesis.looks import Copied
from agents.ascend_craft.synthesis.places import LANES, Buffers, Mask, Place, ScalarPlace, Vector
from agents.ascend_craft.synthesis.sections import Root

if TYPE_CHECKING:
    from agents.ascend_craft.synthesis.position_writer import PositionWriter

_LANES = LANES["f32"]
_DOUBLE_STEPS = 6  # 8, 16; 32, 64; .. up to 16384 elements


class PositionStage:
    """The compute stage of one position: conversion of inputs, instructions, and where the values go."""

    def __init__(self, owner: PositionWriter, needed: Sequence[Node], copied: Copied) -> None:
        self._owner, self._section = owner, owner._section
        self._stage = owner._stage()
        self._needed, self._loaded, self._copied = needed, copied.buffers, copied

    @property
    def lines(self) -> list[str]:
        """What has been written."""
        return self._stage.lines

    def run(self, goals: Sequence[Node], targets: Mapping[int, str]) -> None:
        """Write what computes the goals."""
        for key, (name, dtype) in self._loaded.items():
            node = next(each for each in self._needed if id(each) == key)
            self._stage._known[key] = self._within(node, self._converted(node, name, dtype))
        for node in self._needed:
            place = self._copied.places.get(id(node))
            if isinstance(place, Vector):
                self._stage._own.add(place.buffer)
            if place is not None:
                self._stage._known[id(node)] = self._within(node, place)
        skipped = (
            set(self._loaded)
            | set(self._copied.places)
            | {
                id(below)
                for node in self._needed
                if node.op in ("pick", "view")
                for below in descendants([node])
                if below is not node
            }
        )
        used = {id(arg) for node in self._needed if node.op not in ("pick", "view") for arg in node.args} | {
            id(g) for g in goals
        }
        rest = [
            n
            for n in self._needed
            if id(n) not in self._loaded
            and id(n) not in self._copied.places
            and (id(n) not in skipped or id(n) in used)
        ]
        for node in rest:
            if node.op == "iota":
                self._stage._known[id(node)] = self._counted(node)
        rest = [node for node in rest if node.op != "iota"]
        plain = [node for node in rest if node.op != "scan"]
        if len(plain) == len(rest):
            self._stage.compute(rest, goals, targets)
            return
        self._with_scans(rest, goals, targets)

    def _within(self, node: Node, place: Place) -> Place:
        """Return the place of a value, with the fill where it lies beyond its tensor."""
        if id(node) not in self._copied.beyond:
            return place
        condition, fill = self._copied.beyond[id(node)]
        if isinstance(place, Vector):
            count = self._owner._count
            self._stage.lines += [f"if {condition}:", f"    fill({place.buffer}, {fill}, {count})"]
            return place
        assert isinstance(place, ScalarPlace)
        number = self._owner._writer.fresh()
        self._stage.lines.append(f"{number} = {fill} if {condition} else {place.text}")
        return ScalarPlace(number)

    def _counted(self, node: Node) -> Place:
        """Return the places along an axis as floats."""
        name = self._section.axis_of(node.extra)
        if name != self._section.vector:
            return ScalarPlace(f"({self._owner._index.get(name, '0')}) * 1.0")
        places = self._owner._writer.buffers.declare("places", "tile", "i32")
        dst = self._stage._take()
        self._stage._say("arange", places, self._owner._vector_at)
        self._stage._say("cast", dst, places)
        return Vector(dst)

    def _with_scans(self, rest: Sequence[Node], goals: Sequence[Node], targets: Mapping[int, str]) -> None:
        emit = self._stage._emit

        def emitted(node: Node) -> Place:
            if node.op != "scan":
                return emit(node)
            source = self._stage.vector(node.args[0])
            dst = targets.get(id(node)) if self._stage._uses[id(node)] == 1 else None
            dst = dst or self._stage._take()
            carry, count = self._owner._carry(node), self._owner._count
            if self._section.axis_of(node.extra[1]) == self._section.vector:
                lines = scan_lines(self._owner._writer.buffers, node.extra, source, dst, carry, count)
            else:
                step = f"{COMBINE[node.extra[0]]}({carry}, {carry}, {source}, {count})"
                lines = [step, f"copy({dst}, {carry}, {count})"]
            self._stage.lines += lines
            self._stage._release(node)
            return Vector(dst)

        self._stage._emit = emitted  # type: ignore[method-assign]
        self._stage.compute(rest, goals, targets)

    def _converted(self, node: Node, name: str, dtype: str) -> Place:
        if not self._section.has_vector(node):
            return (
                ScalarPlace(f"read({name}, 0)")
                if dtype == "f32"
                else ScalarPlace(self._converted_number(name, dtype))
            )
        if dtype == "f32":
            return Vector(name)
        dst = self._stage._take()
        if dtype == "u8":
            half = self._owner._writer.buffers.declare("half_bits", "tile", "f16")
            self._stage._say("cast", half, name)
            self._stage._say("cast", dst, half)
        else:
            self._stage._say("cast", dst, name)
        return Vector(dst)

    def _converted_number(self, name: str, dtype: str) -> str:
        if dtype == "i32":
            scalar = self._owner._writer.fresh()
            self._stage.lines.append(f"{scalar} = read({name}, 0) * 1.0")
            return scalar
        wide = self._owner._writer.buffers.declare("result", "8", "f32")
        if dtype == "u8":
            half = self._owner._writer.buffers.declare("half_one", "8", "f16")
            self._stage._say("cast", half, name, count="1")
            name = half
        self._stage._say("cast", wide, name, count="1")
        scalar = self._owner._writer.fresh()
        self._stage.lines.append(f"{scalar} = read({wide}, 0)")
        return scalar

    def finish(self, root: Root, output: str | None, accumulator: Place | None) -> None:
        """Put a root into its output buffer, or add it to this core's part."""
        place = self._stage.place(root.value)
        if output is not None:
            dtype = self._owner._writer.buffers.sizes[output][1]
            if isinstance(place, Vector) and place.buffer != output:
                self._stage._say("cast" if dtype != "f32" else "copy", output, place.buffer)
            elif isinstance(place, ScalarPlace):
                self._put_number(output, dtype, place.text, self._section.has_vector(root.value))
        else:
            assert accumulator is not None
            self._add(root.node.extra[0], place, accumulator)
        self._stage.done(root.value)

    def into(self, node: Node, buffer: str) -> None:
        """Put a value with the vector axis into a buffer, unless it was computed there."""
        place = self._stage.place(node)
        assert isinstance(place, Vector)
        if place.buffer != buffer:
            self._stage._say("copy", buffer, place.buffer)
        self._stage.done(node)

    def _put_number(self, output: str, dtype: str, text: str, wide: bool) -> None:
        if dtype == "f32":
            self._stage._say("fill", output, text, count=None if wide else "8")
            return
        result = self._owner._writer.buffers.declare("result", "8", "f32")
        self._stage._say("fill", result, text, count="8")
        self._stage._say("cast", output, result, count="8")

    def accumulate(self, node: Node, accumulator: Place) -> None:
        """Add a value to what a reduction has."""
        self._add(node.extra[0], self._stage.place(node.args[0]), accumulator)
        self._stage.done(node.args[0])

    def _add(self, kind: str, place: Place, accumulator: Place) -> None:
        if isinstance(accumulator, Vector):
            if isinstance(place, ScalarPlace):
                op = {"sum": "adds", "prod": "muls", "max": "maxs", "min": "mins"}[kind]
                self._stage._say(op, accumulator.buffer, accumulator.buffer, place.text)
                return
            assert isinstance(place, Vector)
            self._stage._say(COMBINE[kind], accumulator.buffer, accumulator.buffer, place.buffer)
            return
        assert isinstance(place, ScalarPlace)
        assert isinstance(accumulator, ScalarPlace)
        name = accumulator.text
        combined = {
            "sum": f"{name} + {place.text}",
            "prod": f"{name} * {place.text}",
            "max": f"max({name}, {place.text})",
            "min": f"min({name}, {place.text})",
        }[kind]
        self._stage.lines.append(f"{name} = {combined}")

    def kept(self, node: Node) -> Place:
        """Return a place of a node that outlives the stage."""
        place = self._stage.place(node)
        if isinstance(place, Mask):
            raise NotCoveredError("comparisons that are used in loops")
        if isinstance(place, Vector):
            if self._stage.owns(place.buffer):
                self._stage._own.discard(place.buffer)
                return place
            buffer = self._owner._writer.buffers.take()
            self._stage._say("copy", buffer, place.buffer)
            return Vector(buffer)
        if place.text.isidentifier():
            return place
        name = self._owner._writer.fresh()
        self._stage.lines.append(f"{name} = {place.text}")
        return ScalarPlace(name)


def scan_lines(
    buffers: Buffers, extra: tuple[str, str, bool], source: str, dst: str, carry: str, count: str
) -> list[str]:
    """Return the lines that scan a tile of ``n`` elements.

    Args:
        buffers: of the program.
        extra: kind, axis, and whether it goes from the end.
        source: buffer of the tile.
        dst: buffer of the outcome.
        carry: scalar that goes from tile to tile.
        count: elements of the tile.
    """
    kind, _, backwards = extra
    one, other = (buffers.declare(name, "tile + 16", "f32") for name in ("ladder", "rung"))
    places = buffers.declare("places", "tile", "i32")
    op, neutral = COMBINE[kind], NEUTRAL[kind]
    lines = [f"arange({places}, 0, {count})", f"muls({places}, {places}, 4, {count})"]
    lines += _padded(one, other, source, neutral, count, backwards)
    shifted = buffers.declare("shifted", "tile", "f32")
    for step in (1, 2, 4):
        base = 4 * (step if backwards else _LANES - step)
        place = "" if backwards else f"[{_LANES}]"
        lines.append(f"gather({shifted}, {one}, {places}, {base}, {count})")
        lines.append(f"{op}({one}{place}, {one}{place}, {shifted}, {count})")
    lines += [
        f"for round in range(0, {_DOUBLE_STEPS}):",
        "    span = 8 << (2 * round)",
        "    if span < " + count + ":",
    ]
    lines += [f"        {line}" for line in _step(op, other, one, "span", count, backwards)]
    lines += ["        if 2 * span < " + count + ":"]
    lines += [f"            {line}" for line in _step(op, one, other, "2 * span", count, backwards)]
    lines += ["        else:", f"            copy({one}, {other}, {count} + {_LANES})"]
    combine = {"sum": "adds", "prod": "muls", "max": "maxs", "min": "mins"}[kind]
    start = "" if backwards else f"[{_LANES}]"
    lines.append(f"{combine}({dst}, {one}{start}, {carry}, {count})")
    lines.append(f"{carry} = read({dst}, {'0' if backwards else f'{count} - 1'})")
    return lines


def _padded(one: str, other: str, source: str, neutral: str, count: str, backwards: bool) -> list[str]:
    """Put a tile beside a block of neutral elements: before it, or behind it from the end."""
    if backwards:
        return [
            f"fill({one}, {neutral}, {count} + 8)",
            f"copy({one}, {source}, {count})",
            f"fill({other}, {neutral}, {count} + 8)",
        ]
    return [
        f"fill({one}, {neutral}, 8)",
        f"fill({other}, {neutral}, 8)",
        f"copy({one}[8], {source}, {count})",
    ]


def _step(op: str, to: str, old: str, reach: str, count: str, backwards: bool) -> list[str]:
    """Combine each element with the one at ``reach`` of it; those that have none stay."""
    if backwards:
        return [
            f"copy({to}, {old}, {count})",
            f"{op}({to}, {old}, {old}[{reach}], {count} - {reach})",
        ]
    return [
        f"copy({to}[8], {old}[8], {reach})",
        f"{op}({to}[8 + {reach}], {old}[8 + {reach}], {old}[8], {count} - {reach})",
    ]
