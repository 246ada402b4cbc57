"""Copies of what views read: other places of a tensor than one row of it.

Along the vector axis a view may step over elements, run backwards, reach beyond the tensor, or lie across its
rows. What lies side by side is copied as it is; anything else is copied whole, and gathered into place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agents.ascend_craft.synthesis.graph import Node, NotCoveredError, Number
from agents.ascend_craft.synthesis.places import Place, ScalarPlace, Vector
from agents.ascend_craft.synthesis.scattered_rows import Along, ScatteredRows, sum_of
from agents.ascend_craft.synthesis.views import ONE, ZERO, Index, Look, Term

if TYPE_CHECKING:
    from agents.ascend_craft.synthesis.position_writer import PositionWriter

_LOADED_BUFFERS = 8


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


class Looks:
    """Writes the copies of views at one position of the loops."""

    def __init__(self, owner: PositionWriter, copied: Copied) -> None:
        self._owner, self._section, self._writer = owner, owner._section, owner._writer
        self._copied = copied
        self._rows = ScatteredRows(owner)
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
            self._copied.places[id(node)] = Vector(
                self._rows.copy(look.source.extra, dtype, base, along, fill)
            )

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

    def _address(self, look: Look, labels: list[str]) -> tuple[str, Along | None, list[str]]:
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
                along = Along(
                    sum_of([at, begin]), step.step, extents[place], stride, index.guarded, step.divisor
                )
            elif index.guarded:
                number = self._writer.fresh()
                self._writer.say(f"{number} = {at}")
                beyond += [f"{number} < 0", f"{number} >= {extents[place]}"]
                parts.append(f"min(max({number}, 0), {extents[place]} - 1) * {stride}")
            elif at != "0":
                parts.append(f"({at}) * {stride}" if stride != "1" else at)
        return sum_of(parts), along, beyond

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
            terms.append(self._rows.number(index.offset))
        return sum_of(terms), row

    def _whole_part(self, text: str, divisor: Number) -> str:
        return text if divisor == ONE or text == "0" else f"({text}) // {self._rows.number(divisor)}"

    def _times(self, step: Number, text: str) -> str:
        if text == "0" or step == ONE:
            return text
        return f"{self._rows.number(step)} * {text}"

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
            self._copied.places[id(node)] = ScalarPlace(number)
            return
        temporary = self._writer.buffers.take()
        self._writer.stage("compute", self._rows.moved(temporary, name, dtype, count))
        self._copied.places[id(node)] = Vector(temporary)

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
