"""Writes one section of a program: units, passes over what they reduce, and the stages of each position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agents.ascend_craft.synthesis.graph import Node, descendants
from agents.ascend_craft.synthesis.instructions import COMPARISONS
from agents.ascend_craft.synthesis.lane_scans import MANY_ROWS, LaneScan
from agents.ascend_craft.synthesis.pass_writer import PassWriter
from agents.ascend_craft.synthesis.places import Place, ScalarPlace, Vector
from agents.ascend_craft.synthesis.position_writer import Block
from agents.ascend_craft.synthesis.sections import Root, Section, is_global
from agents.ascend_craft.synthesis.writer import Tensors, Writer

ELEMS_PER_CORE = 16384  # fewer are not worth the start of a block


class SectionWriter(PassWriter):
    """Writes one section: how its work is cut into units, and shared out.

    Attributes:
        parts: reductions over everything with the scalar that has this core's part, once written.
        flat: whether units are as long as one likes, once written.
    """

    def __init__(
        self, writer: Writer, tensors: Tensors, section: Section, globals_: Mapping[int, Place]
    ) -> None:
        super().__init__(writer, tensors, section, globals_)
        self.parts: list[tuple[Root, str]] = []
        self.flat = False

    def write(self) -> str:
        """Write the section, and return how many cores it can use, in the language of the host."""
        for axis in self._section.axes:
            self._writer.whole(axis.name, axis.text)
        self._begin_parts()
        self._constants()
        units = self._units()
        self._end_parts()
        return units

    def _constants(self) -> None:
        """Compute once what has no axes: functions of reductions over everything."""
        roots = [root.value for root in self._section.roots]
        wanted = [
            node
            for node in descendants(roots, lambda n: self.is_known(n) or not n.axes)
            if not node.axes and not self.is_known(node) and node.op not in ("number", "input", *COMPARISONS)
        ]
        if wanted and all(
            self.is_known(g) for n in wanted for g in descendants([n], is_global) if is_global(g)
        ):
            self._sequence(wanted, [], keep=wanted)

    # units

    def _units(self) -> str:
        section, writer = self._section, self._writer
        tag = "".join(each.removeprefix("n") for each in [section.vector or "x"])
        outer = [name for name in section.parallel if name != section.vector]
        flat = section.vector_is_parallel and not outer and not self._inner_axes()
        first, count = f"first{self._id()}", f"count{self._id()}"
        if flat:
            vector = section.vector
            assert vector is not None
            writer.say(f"{first}, {count} = share({vector}, 64)")
            with writer.block(f"for at, n in tiles({count}, tile):"):
                self._vector_at, self._count = f"({first} + at)", "n"
                self._body()
            self.flat = True
            return f"ceil_div({vector}, {ELEMS_PER_CORE})"
        total = " * ".join(outer) or "1"
        if section.vector_is_parallel:
            vector = section.vector
            assert vector is not None
            cut = writer.whole(f"cut_{tag}", self._cut(vector, outer))
            pieces = writer.whole(f"cut_count_{tag}", f"ceil_div({vector}, {cut})")
            units = f"{total} * {pieces}" if outer else pieces
            writer.say(f"{first}, {count} = share({units})")
            with writer.block(f"for unit in range({first}, {first} + {count}):"):
                writer.say(f"place = (unit % {pieces}) * {cut}", f"length = min({cut}, {vector} - place)")
                self._decode(outer, f"unit // {pieces}")
                self._vector_at, self._count, self._piece = "place", "length", cut
                self._body()
            self._writer.widest(vector)
            return units
        writer.say(f"{first}, {count} = share({total})")
        scan = self._scan_by_lanes(outer)
        if scan is not None:
            writer.lines.pop()
            return LaneScan(self, scan).write(outer[0])
        if self._fits_at_once():
            self._rows(outer, first, count)
        else:
            with writer.block(f"for unit in range({first}, {first} + {count}):"):
                self._decode(outer, "unit")
                self._body()
        if section.vector is not None:
            self._writer.widest(section.vector)
        return total

    def _id(self) -> str:
        return self._writer.fresh().removeprefix("k")

    def _cut(self, vector: str, outer: Sequence[str]) -> str:
        """Return how long the pieces of the vector axis are: tiles, or shorter so that every core has one."""
        rows = " * ".join(outer) or "1"
        return f"min(tile, max(64, align(ceil_div({vector}, ceil_div(vec_cores(), {rows})), 64)))"

    def _decode(self, outer: Sequence[str], text: str) -> None:
        rest = text
        for place, name in enumerate(reversed(outer)):
            variable = f"i{name.removeprefix('n')}"
            if place == len(outer) - 1:
                self._writer.say(f"{variable} = {rest}")
            else:
                self._writer.say(f"{variable} = ({rest}) % {name}")
                rest = f"({rest}) // {name}"
            self._index[name] = variable

    def _inner_axes(self) -> list[str]:
        return [axis.name for axis in self._section.axes if axis.name not in self._section.parallel]

    def _scan_by_lanes(self, outer: Sequence[str]) -> Node | None:
        """Return the only scan of the section if rows are many, and can be scanned 16 at a time."""
        section = self._section
        scans = [node for node in self._nodes() if node.op == "scan"]
        if len(scans) != 1 or len(outer) != 1 or self._inner_axes() != [section.vector]:
            return None
        many = section.axis(outer[0]).size >= MANY_ROWS
        along = section.axis_of(scans[0].extra[1]) == section.vector
        reduced = any(self._is_local(node) for node in self._nodes())
        rows = self._may_block(outer[0], [root.value for root in section.roots])
        return scans[0] if many and along and rows and not reduced else None

    def _fits_at_once(self) -> bool:
        """Say whether a unit is one row, reduced and mapped without leaving the buffers."""
        kinds = {node.extra[0] for node in self._nodes() if self._is_local(node)}
        one_row = self._section.vector is not None and self._inner_axes() == [self._section.vector]
        return one_row and bool(kinds) and "prod" not in kinds and not self._scans()

    def _rows(self, outer: Sequence[str], first: str, count: str) -> None:
        """Write units that are rows: several at once where a row fits a tile, else each in passes."""
        writer, vector, known = self._writer, self._section.vector, dict(self._known)
        assert vector is not None
        roots = [root.value for root in self._section.roots]
        with writer.block(f"if {vector} <= tile:"):
            self._vector_at, self._count = "0", vector
            if len(outer) == 1 and self._may_block(outer[0], roots):
                rows = self._rows_of_block(vector)
                with writer.block(f"for top, height in tiles({count}, {rows}):"):
                    self._index[outer[0]] = f"({first} + top)"
                    self._block = Block(outer[0], "height")
                    self._at_once()
                    self._block = None
            else:
                with writer.block(f"for unit in range({first}, {first} + {count}):"):
                    self._decode(outer, "unit")
                    self._at_once()
        self._known = dict(known)
        with writer.block("else:"), writer.block(f"for unit in range({first}, {first} + {count}):"):
            self._decode(outer, "unit")
            self._body()
        self._known = known

    # reductions over everything

    def _begin_parts(self) -> None:
        fills: list[str] = []
        for root in self._section.roots:
            if root.output is None:
                self._accumulators[id(root.node)] = self._accumulator(root.node, "tile", fills)
        self._writer.stage("compute", fills)

    def _end_parts(self) -> None:
        for root in self._section.roots:
            place = self._accumulators.get(id(root.node))
            if isinstance(place, Vector):
                self.parts.append((root, self._collapsed(root.node.extra[0], place.buffer, "tile")))
                self._writer.buffers.give(place.buffer)
            elif isinstance(place, ScalarPlace):
                self.parts.append((root, place.text))
