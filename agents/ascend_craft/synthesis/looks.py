"""Copies of what views read: other places of a tensor than one row of it.

Along the vector axis a view may step over elements, run backwards, reach beyond the tensor, or lie across its
rows. What lies side by side is copied as it is; anything else is copied whole, and gathered into place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agents.ascend_craft.synthesis.graph import Node, NotCoveredError, Number
from agents.ascend_craft.synthesis.places import Place, Scalar, Vector
from agents.ascend_craft.synthesis.views import ONE, ZERO, Index, Look, Term

if TYPE_CHECKING:
    from agents.ascend_craft.synthesis.position_writer import PositionWriter

_LOADED_BUFFERS = 8
_LONGEST_STEP = 4
"""Steps up to which all that lies between is copied, too."""


@dataclass
class Copied:
    """What is copied at one position.

    Attributes:
        loads: copies of the main copy-in.
        buffers: buffer and type of what they bring, by the identity of nodes.
        places: what is in temporaries already.
        beyond: for each node that may lie beyond its tensor: when it does, and what is read then.
    """

    loads: list[str] = field(default_factory=list)
    buffers: dict[int, tuple[str, str]] = field(default_factory=dict)
    places: dict[int, Place] = field(default_factory=dict)
    beyond: dict[int, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Along:
    """How a view goes along the vector axis: its first place, its step, and the tensor there."""

    first: str
    step: Number
    extent: str
    stride: str
    guarded: bool
    divisor: Number = ONE


class Looks:
    """Writes the copies of views at one position of the loops."""

    def __init__(self, owner: PositionWriter, copied: Copied) -> None:
        self._owner, self._section, self._writer = owner, owner._section, owner._writer
        self._copied = copied
        self._used: set[str] = set()

    def copy(self, node: Node) -> None:
        """Write the copy of a view, or of an input whose axes come in another order."""
        look = self._look(node)
        dtype = self._owner._tensors.dtypes[look.source.extra]
        if node.op == "view" and any(self._section.has_vector(each) for each in node.args):
            self._copied.places[id(node)] = Vector(self._picked(node, look, dtype))
            return
        labels = [self._label(each) for each in node.args] if node.op == "view" else []
        base, along, beyond = self._address(look, labels)
        fill = self._writer.number(Number.of(look.fill))
        if beyond:
            self._copied.beyond[id(node)] = (" or ".join(beyond), fill)
        if along is None:
            self._load(node, look, dtype, base, "1")
        elif along.stride == "1" and along.step == along.divisor == ONE and not along.guarded:
            self._load(node, look, dtype, f"{base} + {along.first}", self._owner._count)
        else:
            self._copied.places[id(node)] = Vector(self._gathered(look, dtype, base, along, fill))

    def _picked(self, node: Node, look: Look, dtype: str) -> str:
        """Copy a whole row and pick the elements whose places another row has; return their buffer."""
        (label,), last = node.args, look.indices[-1]
        plain = last.label == 0 and not last.terms and dtype == "f32" and not last.guarded
        base, along, beyond = self._address(Look(look.source, (*look.indices[:-1], Index(()))), [])
        if not plain or along is not None or beyond or self._owner._tensors.dtypes[label.extra] != "i32":
            raise NotCoveredError("places that differ along a row, other than of one row of floats")
        buffers, count, extent = self._writer.buffers, self._owner._count, self._extent(look.source.axes[-1])
        self._writer.widest(extent)
        name = buffers.declare(f"{look.source.extra}_row_in", "tile", dtype)
        chosen = buffers.declare(f"{label.extra}_at_in", "tile", "i32")
        places, result = buffers.declare("places", "tile", "i32"), buffers.take()
        copies = [
            f"load({name}, {look.source.extra}[{base}], {extent})",
            f"load({chosen}, {label.extra}[{self._owner._at(label)}], {count})",
        ]
        self._writer.stage("copyin", copies)
        lines = [
            f"muls({places}, {chosen}, 4, {count})",
            f"gather({result}, {name}, {places}, 0, {count})",
        ]
        self._writer.stage("compute", lines)
        return result

    def _look(self, node: Node) -> Look:
        if node.op == "view":
            return node.extra  # type: ignore[no-any-return]
        return Look(node, tuple(Index((Term(axis),)) for axis in node.axes))

    def _label(self, label: Node) -> str:
        """Write the stages that read a place from another tensor, and return the number that has it."""
        if self._owner._tensors.dtypes[label.extra] != "i32":
            raise NotCoveredError("places of another type than int32")
        number = self._writer.fresh()
        name = self._writer.buffers.declare(f"{label.extra}_one", "8", "i32")
        self._writer.stage("copyin", [f"load({name}, {label.extra}[{self._owner._at(label)}], 1)"])
        self._writer.stage("compute", [f"{number} = read({name}, 0)"])
        return number

    def _address(self, look: Look, labels: list[str]) -> tuple[str, _Along | None, list[str]]:
        """Return the place of what does not change along a row, how the row goes, and when it lies beyond."""
        extents = [self._extent(axis) for axis in look.source.axes]
        parts, along, beyond = [], None, []
        for place, index in enumerate(look.indices):
            stride = " * ".join(extents[place + 1 :]) or "1"
            at, step = self._index(index, labels)
            if step is not None:
                if along is not None:
                    raise NotCoveredError("a diagonal")
                begin = self._times(step.step, self._whole_part(self._owner._vector_at, step.divisor))
                along = _Along(
                    self._sum([at, begin]), step.step, extents[place], stride, index.guarded, step.divisor
                )
            elif index.guarded:
                number = self._writer.fresh()
                self._writer.say(f"{number} = {at}")
                beyond += [f"{number} < 0", f"{number} >= {extents[place]}"]
                parts.append(f"min(max({number}, 0), {extents[place]} - 1) * {stride}")
            elif at != "0":
                parts.append(f"({at}) * {stride}" if stride != "1" else at)
        return self._sum(parts), along, beyond

    def _index(self, index: Index, labels: list[str]) -> tuple[str, Term | None]:
        """Return a place along an axis but for the row, and how the row goes along it."""
        terms: list[str] = []
        row: Term | None = None
        for term in index.terms:
            name = self._section.axis_of(term.axis)
            if not self._section.ends_group(term.axis):
                continue  # the last one has the place along all of them
            if name != self._section.vector:
                at = self._whole_part(self._owner._index.get(name, "0"), term.divisor)
                terms.append(self._times(term.step, at))
            elif row is None:
                row = term
            else:
                raise NotCoveredError("a row whose places are no multiples")
        if index.label is not None:
            terms.append(labels[index.label])
        if index.offset != ZERO:
            terms.append(self._number(index.offset))
        return self._sum(terms), row

    def _whole_part(self, text: str, divisor: Number) -> str:
        return text if divisor == ONE or text == "0" else f"({text}) // {self._number(divisor)}"

    def _times(self, step: Number, text: str) -> str:
        if text == "0" or step == ONE:
            return text
        return f"{self._number(step)} * {text}"

    def _sum(self, terms: list[str]) -> str:
        return " + ".join(term for term in terms if term != "0") or "0"

    def _number(self, number: Number) -> str:
        return number.text if number.literal else self._writer.named(number.text)

    def _extent(self, axis: str) -> str:
        text = self._section.texts[axis]
        return text if text.isdigit() else self._writer.named(text)

    def _load(self, node: Node, look: Look, dtype: str, at: str, count: str) -> None:
        """Copy elements side by side: with the other copies if there is a buffer left, else ahead of them."""
        wide = self._section.has_vector(node)
        name = self._free_name(look.source.extra, wide=wide)
        if name is not None:
            self._writer.buffers.declare(name, "tile" if wide else "8", dtype)
            self._copied.loads.append(f"load({name}, {look.source.extra}[{at}], {count})")
            self._copied.buffers[id(node)] = (name, dtype)
            return
        name = f"{look.source.extra}_{'ahead_in' if wide else 'ahead_one'}"
        self._writer.buffers.declare(name, "tile" if wide else "8", dtype)
        self._writer.stage("copyin", [f"load({name}, {look.source.extra}[{at}], {count})"])
        if not wide:
            if dtype not in ("f32", "i32"):
                raise NotCoveredError("many numbers of 8 or 16 bits, each for itself")
            number = self._writer.fresh()
            self._writer.stage("compute", [f"{number} = read({name}, 0) * 1.0"])
            self._copied.places[id(node)] = Scalar(number)
            return
        temporary = self._writer.buffers.take()
        self._writer.stage("compute", self._moved(temporary, name, dtype, count))
        self._copied.places[id(node)] = Vector(temporary)

    def _moved(self, to: str, name: str, dtype: str, count: str) -> list[str]:
        if dtype == "u8":
            half = self._writer.buffers.declare("half_bits", "tile", "f16")
            return [f"cast({half}, {name}, {count})", f"cast({to}, {half}, {count})"]
        return [f"{'copy' if dtype == 'f32' else 'cast'}({to}, {name}, {count})"]

    def _free_name(self, tensor: str, *, wide: bool) -> str | None:
        """Return a buffer that nothing else of this position is copied to; ``None`` if there are too many."""
        ending = "in" if wide else "one"
        room = _LOADED_BUFFERS - 1 - 2 * len(self._owner._tensors.inputs)
        for number in range(1, max(1, room) + 1):
            name = f"{tensor}_{number}_{ending}"
            if name in self._used:
                continue
            if name not in self._writer.seen and len(self._writer.seen) >= max(1, room):
                return None
            self._used.add(name)
            self._writer.seen.add(name)
            return name
        return None

    def _gathered(self, look: Look, dtype: str, base: str, along: _Along, fill: str) -> str:
        """Write the stages that copy a row whose elements do not lie side by side; return its buffer."""
        step = int(along.step.value) if along.step.literal else 0
        near = along.stride == "1" and (step == -1 or 1 <= step <= _LONGEST_STEP)
        if along.guarded and step not in range(1, _LONGEST_STEP + 1):
            raise NotCoveredError("borders along a row that is read backwards or by steps of any length")
        if along.guarded and not near and step != 1:
            raise NotCoveredError("borders along a column that is read by steps")
        if along.divisor != ONE:
            if not near or step < 1 or along.guarded:
                raise NotCoveredError("what is repeated, read across rows, backwards or beyond borders")
            return self._repeated(look.source.extra, dtype, base, along, step)
        return (self._near if near else self._far)(look.source.extra, dtype, base, along, step, fill)

    def _clipped(self, along: _Along, step: int) -> tuple[str, str, str]:
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

    def _near(self, tensor: str, dtype: str, base: str, along: _Along, step: int, fill: str) -> str:
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
        self._writer.stage("copyin", [f"load({name}, {tensor}[{self._sum([base, low])}], {length})"])
        source = name
        if dtype != "f32":
            if dtype == "u8" and size > 1:
                raise NotCoveredError("steps over elements of 8 bits")
            source = buffers.declare(f"plain{size}", room, "f32")
            lines = [*self._moved(source, name, dtype, length), *lines]
        if along.guarded:
            before, lines_before = self._bordered(source, size, length, fill)
            lines = [*lines[: len(lines) - 2], *lines_before, *lines[len(lines) - 2 :]]
            start = self._start(first, low, size)
            source = before
        result = buffers.take()
        self._writer.stage("compute", [*lines, f"gather({result}, {source}, places, {start}, {count})"])
        return result

    def _repeated(self, tensor: str, dtype: str, base: str, along: _Along, step: int) -> str:
        """Copy a row of which each element is wanted several times, and gather it."""
        buffers, count, owner = self._writer.buffers, self._owner._count, self._owner
        divisor, at = self._number(along.divisor), owner._vector_at
        room = "tile" if step == 1 else f"{step} * tile"
        name = buffers.declare(f"{tensor}_by{step}_in", room, dtype)
        length = f"{step} * (({at} + {count} - 1) // {divisor} - ({at}) // {divisor}) + 1"
        start = self._sum([base, along.first])
        self._writer.stage("copyin", [f"load({name}, {tensor}[{start}], {length})"])
        lines, source = [], name
        if dtype != "f32":
            if dtype == "u8" and step > 1:
                raise NotCoveredError("steps over elements of 8 bits")
            source = buffers.declare(f"plain{step}", room, "f32")
            lines = self._moved(source, name, dtype, length)
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

    def _far(self, tensor: str, dtype: str, base: str, along: _Along, step: int, fill: str) -> str:
        """Copy a row across the rows of a tensor: each element in a block of 32 bytes of its own."""
        if dtype not in ("f32", "i32"):
            raise NotCoveredError("rows across a tensor of 8 or 16 bits")
        buffers, count = self._writer.buffers, self._owner._count
        name = buffers.declare(f"{tensor}_far_in", "8 * tile", dtype)
        first, low, length = along.first, along.first, count
        if along.guarded:
            first, low, length = self._clipped(along, step)
        at = self._sum([base, f"({low}) * {along.stride}" if along.stride != "1" else low])
        pitch = " * ".join(each for each in (self._number(along.step), along.stride) if each != "1") or "1"
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
