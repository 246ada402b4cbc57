"""Rows of a tensor whose elements do not lie side by side: copied with what lies between, and gathered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.ascend_craft.synthesis.graph import NotCoveredError, Number
from agents.ascend_craft.synthesis.views import ONE

if TYPE_CHECKING:
    from agents.ascend_craft.synthesis.position_writer import PositionWriter

_LONGEST_STEP = 4
"""Steps up to which all that lies between is copied, too."""


@dataclass(frozen=True)
class Along:
    """How a view goes along the vector axis: its first place, its step, and the tensor there."""

    first: str
    step: Number
    extent: str
    stride: str
    guarded: bool
    divisor: Number = ONE


def sum_of(terms: Sequence[str]) -> str:
    """Return the sum of places; what is 0 is left out."""
    return " + ".join(term for term in terms if term != "0") or "0"


class ScatteredRows:
    """Writes the stages that copy such rows and gather their elements."""

    def __init__(self, owner: PositionWriter) -> None:
        self._owner, self._writer = owner, owner._writer

    def number(self, number: Number) -> str:
        """Return a number as a program writes it."""
        return number.text if number.literal else self._writer.named(number.text)

    def moved(self, to: str, name: str, dtype: str, count: str) -> list[str]:
        """Return the lines that bring what was copied into a buffer of floats.

        Args:
            to: buffer of floats.
            name: buffer that was copied into.
            dtype: its element type.
            count: number of elements, as a program writes it.
        """
        if dtype == "u8":
            half = self._writer.buffers.declare("half_bits", "tile", "f16")
            return [f"cast({half}, {name}, {count})", f"cast({to}, {half}, {count})"]
        return [f"{'copy' if dtype == 'f32' else 'cast'}({to}, {name}, {count})"]

    def copy(self, tensor: str, dtype: str, base: str, along: Along, fill: str) -> str:
        """Write the stages that copy a row whose elements do not lie side by side; return its buffer.

        Args:
            tensor: name of the tensor.
            dtype: its element type.
            base: index of the element that the row begins at, as a program writes it.
            along: how the view goes along the row.
            fill: value of what lies beyond the tensor.
        """
        step = int(along.step.value) if along.step.literal else 0
        near = along.stride == "1" and (step == -1 or 1 <= step <= _LONGEST_STEP)
        if along.guarded and step not in range(1, _LONGEST_STEP + 1):
            raise NotCoveredError("borders along a row that is read backwards or by steps of any length")
        if along.guarded and not near and step != 1:
            raise NotCoveredError("borders along a column that is read by steps")
        if along.divisor != ONE:
            if not near or step < 1 or along.guarded:
                raise NotCoveredError("what is repeated, read across rows, backwards or beyond borders")
            return self._repeated(tensor, dtype, base, along, step)
        return (self._near if near else self._far)(tensor, dtype, base, along, step, fill)

    def _clipped(self, along: Along, step: int) -> tuple[str, str, str]:
        """Return the first place that is wanted, the first that there is, and how many are copied."""
        count = self._owner._count
        first, low, length = (self._writer.fresh() for _ in range(3))
        reach = count if step == 1 else f"{step} * ({count} - 1) + 1"
        self._writer.say(
            f"{first} = {along.first}",
            f"{low} = min(max({first}, 0), {along.extent} - 1)",
            f"{length} = max(1, min({first} + {reach}, {along.extent}) - {low})",
        )
        return first, low, length

    def _near(self, tensor: str, dtype: str, base: str, along: Along, step: int, fill: str) -> str:
        """Copy a row with all that lies between its elements, and gather them."""
        buffers, count, size = self._writer.buffers, self._owner._count, abs(step)
        room = "tile" if size == 1 else f"{size} * tile"
        name = buffers.declare(f"{tensor}_by{size}_in", room, dtype)
        lines = self._places(4 * size, count)
        first, low, length = along.first, along.first, count if size == 1 else f"{size} * ({count} - 1) + 1"
        start = "0"
        if along.guarded:
            first, low, length = self._clipped(along, step)
        elif step < 0:
            low = f"{along.first} - ({count} - 1)"
            lines = [*self._places(-4, count), f"adds(places, places, 4 * ({count} - 1), {count})"]
        self._writer.stage("copyin", [f"load({name}, {tensor}[{sum_of([base, low])}], {length})"])
        source = name
        if dtype != "f32":
            if dtype == "u8" and size > 1:
                raise NotCoveredError("steps over elements of 8 bits")
            source = buffers.declare(f"plain{size}", room, "f32")
            lines = [*self.moved(source, name, dtype, length), *lines]
        if along.guarded:
            before, lines_before = self._bordered(source, size, length, fill)
            lines = [*lines[: len(lines) - 2], *lines_before, *lines[len(lines) - 2 :]]
            start = self._start(first, low, size)
            source = before
        result = buffers.take()
        self._writer.stage("compute", [*lines, f"gather({result}, {source}, places, {start}, {count})"])
        return result

    def _repeated(self, tensor: str, dtype: str, base: str, along: Along, step: int) -> str:
        """Copy a row of which each element is wanted several times, and gather it."""
        buffers, count, owner = self._writer.buffers, self._owner._count, self._owner
        divisor, at = self.number(along.divisor), owner._vector_at
        room = "tile" if step == 1 else f"{step} * tile"
        name = buffers.declare(f"{tensor}_by{step}_in", room, dtype)
        length = f"{step} * (({at} + {count} - 1) // {divisor} - ({at}) // {divisor}) + 1"
        start = sum_of([base, along.first])
        self._writer.stage("copyin", [f"load({name}, {tensor}[{start}], {length})"])
        lines, source = [], name
        if dtype != "f32":
            if dtype == "u8" and step > 1:
                raise NotCoveredError("steps over elements of 8 bits")
            source = buffers.declare(f"plain{step}", room, "f32")
            lines = self.moved(source, name, dtype, length)
        places, result = buffers.declare("places", "tile", "i32"), buffers.take()
        lines += [
            f"arange({places}, ({at}) % {divisor}, {count})",
            f"cast({result}, {places}, {count})",
            f"adds({result}, {result}, 0.5, {count})",
            f"muls({result}, {result}, 1.0 / {divisor}, {count})",
            f"cast({places}, {result}, {count})",
            f"muls({places}, {places}, {4 * step}, {count})",
            f"gather({result}, {source}, {places}, 0, {count})",
        ]
        self._writer.stage("compute", lines)
        return result

    def _bordered(self, source: str, size: int, length: str, fill: str) -> tuple[str, list[str]]:
        """Return a buffer with what was copied between borders, and the lines that fill it."""
        wide = self._writer.buffers.declare(f"wide{size}", f"{2 * size} * tile + 64", "f32")
        return wide, [
            f"fill({wide}, {fill}, 2 * {self._border(size)} + 64)",
            f"copy({wide}[{self._border(size)}], {source}, {length})",
        ]

    def _border(self, size: int) -> str:
        """Return how many elements of fill stand before what was copied."""
        room = f"align({self._owner._count}, 64)"
        return room if size == 1 else f"{size} * {room}"

    def _start(self, first: str, low: str, size: int) -> str:
        """Return the byte from which a row is gathered: before what was copied, or behind it."""
        border = self._border(size)
        return f"4 * ({border} + max(min({first} - {low}, 8), 0 - {border}))"

    def _far(self, tensor: str, dtype: str, base: str, along: Along, step: int, fill: str) -> str:
        """Copy a row across the rows of a tensor: each element in a block of 32 bytes of its own."""
        if dtype not in ("f32", "i32"):
            raise NotCoveredError("rows across a tensor of 8 or 16 bits")
        buffers, count = self._writer.buffers, self._owner._count
        name = buffers.declare(f"{tensor}_far_in", "8 * tile", dtype)
        first, low, length = along.first, along.first, count
        if along.guarded:
            first, low, length = self._clipped(along, step)
        at = sum_of([base, f"({low}) * {along.stride}" if along.stride != "1" else low])
        pitch = " * ".join(each for each in (self.number(along.step), along.stride) if each != "1") or "1"
        load = f"load({name}, {tensor}[{at}], 1, rows={length}, pitch={pitch})"
        self._writer.stage("copyin", [load])
        source, lines = name, []
        if dtype != "f32":
            source = buffers.declare("plain8", "8 * tile", "f32")
            lines = [f"cast({source}, {name}, 8 * {length})"]
        result = buffers.take()
        lines += [*self._places(32, length), f"gather({result}, {source}, places, 0, {length})"]
        if along.guarded:
            wide, before = self._bordered(result, 1, length, fill)
            start = self._start(first, low, 1)
            lines += [*before, *self._places(4, count), f"gather({result}, {wide}, places, {start}, {count})"]
        self._writer.stage("compute", lines)
        return result

    def _places(self, apart_bytes: int, count: str) -> list[str]:
        places = self._writer.buffers.declare("places", "tile", "i32")
        return [f"arange({places}, 0, {count})", f"muls({places}, {places}, {apart_bytes}, {count})"]
