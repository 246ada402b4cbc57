"""Writes one section of a program: units, passes over what they reduce, and the stages of each position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from agents.ascend_craft.synthesis.graph import Node, NotCoveredError, descendants
from agents.ascend_craft.synthesis.instructions import (
    COMPARISONS,
    NEUTRAL,
    Place,
    Scalar,
    Vector,
)
from agents.ascend_craft.synthesis.lane_scans import MANY_ROWS, LaneScan
from agents.ascend_craft.synthesis.position_writer import LANES, Block, PositionWriter
from agents.ascend_craft.synthesis.sections import Root, Section, is_global
from agents.ascend_craft.synthesis.writer import Tensors, Writer

ELEMS_PER_CORE = 16384  # fewer are not worth the start of a block


class SectionWriter(PositionWriter):
    """Writes one section.

    Attributes:
        parts: reductions over everything with the scalar that has this core's part, once written.
        flat: whether units are as long as one likes, once written.
    """

    def __init__(
        self, writer: Writer, tensors: Tensors, section: Section, globals_: Mapping[int, Place]
    ) -> None:
        super().__init__(writer, tensors, section, globals_)
        self._piece = "tile"
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
            self._widest(vector)
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
            self._widest(section.vector)
        return total

    def _id(self) -> str:
        return self._writer.fresh().removeprefix("k")

    def _widest(self, vector: str) -> None:
        known = self._writer.host.get("widest")
        self._writer.host["widest"] = vector if known is None else f"max({known}, {vector})"

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

    # bodies

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

    def _rows_of_block(self, length: str) -> str:
        """Have the host say how many rows of a length a tile holds."""
        lanes = max(LANES.get(dtype, 16) for dtype in self._tensors.dtypes.values())
        return self._writer.whole(f"cut_rows_{length}", f"max(1, tile // align({length}, {lanes}))")

    def _may_block(self, axis: str, roots: Sequence[Node]) -> bool:
        """Say whether all that is copied along an axis comes in rows of a known type."""
        section = self._section
        nodes = [
            node for node in descendants(roots, lambda n: id(n) in self._known) if id(node) not in self._known
        ]
        copied = [(node, self._tensors.dtypes[node.extra]) for node in nodes if node.op == "input"]
        copied += [
            (root.value, self._tensors.dtypes[root.output])
            for root in section.roots
            if root.output is not None and root.value in roots
        ]
        along = [(node, dtype) for node, dtype in copied if axis in section.axes_of(node)]
        rows = all(section.has_vector(node) and dtype in LANES for node, dtype in along)
        return bool(along) and rows and not any(node.op == "pick" for node in nodes)

    def _scans(self) -> bool:
        return any(node.op == "scan" for node in self._nodes())

    def _is_local(self, node: Node) -> bool:
        return node.op == "reduce" and not is_global(node)

    def _at_once(self) -> None:
        """Write a unit that fits the buffers as one sequence of stages."""
        self._sequence([root.value for root in self._section.roots], self._section.roots)

    def _body(self) -> None:
        """Write a unit pass by pass: reductions by their depth, then what is stored."""
        known = dict(self._known)
        for level in self._levels():
            groups: dict[tuple[str, ...], list[Node]] = {}
            for node in level:
                groups.setdefault(tuple(self._section.inner(node.args[0])), []).append(node)
            for inner, nodes in groups.items():
                self._reduce_pass(inner, nodes)
        stored: dict[tuple[str, ...], list[Root]] = {}
        for root in self._section.roots:
            stored.setdefault(tuple(self._section.inner(root.value)), []).append(root)
        for inner, roots in stored.items():
            values = [root.value for root in roots]
            self._unit_values(values, inner)
            with self._loops(inner, values):
                self._sequence(values, roots)
        self._free_known(known)

    def _free_known(self, before: dict[int, Place]) -> None:
        for key, place in self._known.items():
            if key not in before and isinstance(place, Vector):
                self._writer.buffers.give(place.buffer)
        self._known = before

    def _levels(self) -> list[list[Node]]:
        depths: dict[int, int] = {}
        levels: dict[int, list[Node]] = {}
        for node in self._nodes():
            depth = max((depths[id(arg)] for arg in node.args if id(arg) in depths), default=0)
            if self._is_local(node):
                levels.setdefault(depth, []).append(node)
                depth += 1
            depths[id(node)] = depth
        return [levels[depth] for depth in sorted(levels)]

    def _is_unit_level(self, node: Node) -> bool:
        return not self._section.inner(node)

    def _unit_values(self, roots: Sequence[Node], inner: Sequence[str]) -> None:
        """Compute ahead of loops what they need and what does not change in them."""
        if not inner:
            return
        wanted = [
            node
            for node in descendants(roots, lambda n: id(n) in self._known or self._is_unit_level(n))
            if self._is_unit_level(node) and id(node) not in self._known and node.op != "number"
        ]
        wanted = [node for node in wanted if node.op not in COMPARISONS]
        if wanted:
            self._sequence(wanted, [], keep=wanted)

    def _reduce_pass(self, inner: tuple[str, ...], nodes: Sequence[Node]) -> None:
        """Write one pass that reduces; ``inner`` are the axes to loop over."""
        section = self._section
        values = [node.args[0] for node in nodes]
        self._unit_values(values, inner)
        accumulators: dict[int, Place] = {}
        fills: list[str] = []
        length = self._count if section.vector_is_parallel else "tile"
        for node in nodes:
            left = [name for name in section.axes_of(node) if name not in section.parallel]
            if left:
                raise NotCoveredError("reductions of which one keeps what another one reduces")
            accumulators[id(node)] = self._accumulator(node, length, fills)
        self._writer.stage("compute", fills)
        with self._loops(inner, values):
            self._sequence(values, [], accumulate=[(node, accumulators[id(node)]) for node in nodes])
        for node in nodes:
            self._known[id(node)] = self._finished(node, accumulators[id(node)])

    def _accumulator(self, node: Node, length: str, fills: list[str]) -> Place:
        """Return where a reduction accumulates; ``fills`` gets what sets a buffer to the neutral element."""
        neutral = NEUTRAL[node.extra[0]]
        if self._section.has_vector(node.args[0]):
            name = self._writer.buffers.take()
            fills.append(f"fill({name}, {neutral}, {length})")
            return Vector(name)
        name = self._writer.fresh()
        self._writer.say(f"{name} = {neutral}")
        return Scalar(name)

    def _finished(self, node: Node, accumulator: Place) -> Place:
        """Return where the outcome of a reduction is, once its loops are over."""
        if not isinstance(accumulator, Vector) or self._section.has_vector(node):
            return accumulator
        name = self._collapsed(node.extra[0], accumulator.buffer, "tile")
        self._writer.buffers.give(accumulator.buffer)
        return Scalar(name)

    def _collapsed(self, kind: str, buffer: str, count: str) -> str:
        """Write a stage that reduces a whole buffer to a scalar, and return that."""
        if kind == "prod":
            return self._product(buffer)
        stage = self._stage()
        name = stage.reduced(kind, buffer, count)
        self._writer.stage("compute", stage.lines)
        return name

    def _product(self, buffer: str) -> str:
        """Multiply a whole tile: 64 lanes over all of it, then by halves, then the last eight one by one."""
        name = self._writer.fresh()
        with self._writer.block("with compute():"):
            with self._writer.block("for piece in range(1, tile // 64):"):
                self._writer.say(f"mul({buffer}, {buffer}, {buffer}[piece * 64], 64)")
            for half in (32, 16, 8):
                self._writer.say(f"mul({buffer}, {buffer}, {buffer}[{half}], {half})")
            self._writer.say(f"{name} = 1.0")
            with self._writer.block("for lane in range(0, 8):"):
                self._writer.say(f"{name} = {name} * read({buffer}, lane)")
        return name

    @contextmanager
    def _loops(self, inner: Sequence[str], roots: Sequence[Node]) -> Iterator[None]:
        """Loop over inner axes, the vector axis in tiles."""
        section, writer = self._section, self._writer
        lines = [name for name in inner if name != section.vector]
        heads = []
        for name in lines:
            variable = f"j{name.removeprefix('n')}"
            self._index[name] = variable
            head = f"for {variable} in range(0, {name}):"
            if name == lines[-1] and self._may_block(name, roots):
                length = self._piece if section.vector_is_parallel else str(section.vector)
                self._block = Block(name, f"height{name.removeprefix('n')}")
                head = (
                    f"for {variable}, {self._block.height} in tiles({name}, {self._rows_of_block(length)}):"
                )
            heads.append(head)
        depth = writer.depth
        scans = [node for node in descendants(roots, is_global) if node.op == "scan"]
        self._begin_scans(scans, inner)
        for head in heads:
            writer.say(head)
            writer.depth += 1
        if section.vector in inner:
            if any(scan.extra[2] for scan in scans):
                writer.say(f"for step in range(0, ceil_div({section.vector}, tile)):")
                writer.depth += 1
                writer.say(
                    f"back = (ceil_div({section.vector}, tile) - 1 - step) * tile",
                    f"reach = min(tile, {section.vector} - back)",
                )
                self._vector_at, self._count = "back", "reach"
            else:
                writer.say(f"for at, n in tiles({section.vector}, tile):")
                writer.depth += 1
                self._vector_at, self._count = "at", "n"
        yield
        self._block = None
        writer.depth = depth

    def _begin_scans(self, scans: Sequence[Node], inner: Sequence[str]) -> None:
        """Set what scans carry from tile to tile, or from row to row, to its beginning."""
        if len({scan.extra[2] for scan in scans}) > 1:
            raise NotCoveredError("scans in both directions at once")
        for scan in scans:
            kind, axis, backwards = scan.extra
            name = self._carry(scan)
            if self._section.axis_of(axis) == self._section.vector:
                self._writer.say(f"{name} = {NEUTRAL[kind]}")
            elif backwards or list(inner) != [self._section.axis_of(axis)]:
                raise NotCoveredError("scans along other axes than the last, backwards or within more loops")
            else:
                self._writer.buffers.declare(name, "tile", "f32")
                self._writer.stage("compute", [f"fill({name}, {NEUTRAL[kind]}, {self._count})"])

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
            elif isinstance(place, Scalar):
                self.parts.append((root, place.text))
