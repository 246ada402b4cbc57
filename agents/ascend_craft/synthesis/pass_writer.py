"""Writes one unit of a section: a pass over its axes for each level of reductions, then what is stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from agents.ascend_craft.synthesis.graph import Node, NotCoveredError, descendants
from agents.ascend_craft.synthesis.instructions import COMPARISONS, NEUTRAL
from agents.ascend_craft.synthesis.places import LANES, Place, ScalarPlace, Vector
from agents.ascend_craft.synthesis.position_writer import Block, PositionWriter
from agents.ascend_craft.synthesis.sections import Root, Section, is_global
from agents.ascend_craft.synthesis.writer import Tensors, Writer


class PassWriter(PositionWriter):
    """Writes units pass by pass, inside of loops that are already there."""

    def __init__(
        self, writer: Writer, tensors: Tensors, section: Section, globals_: Mapping[int, Place]
    ) -> None:
        super().__init__(writer, tensors, section, globals_)
        self._piece = "tile"  # length of the vector axis in a unit

    def _may_block(self, axis: str, roots: Sequence[Node]) -> bool:
        """Say whether all that is copied along an axis comes in rows of a known type."""
        section = self._section
        nodes = [
            node for node in descendants(roots, lambda n: id(n) in self._known) if id(node) not in self._known
        ]
        if any(node.op == "iota" or section.is_view(node) for node in nodes):
            return False
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
        return ScalarPlace(name)

    def _finished(self, node: Node, accumulator: Place) -> Place:
        """Return where the outcome of a reduction is, once its loops are over."""
        if not isinstance(accumulator, Vector) or self._section.has_vector(node):
            return accumulator
        name = self._collapsed(node.extra[0], accumulator.buffer, "tile")
        self._writer.buffers.give(accumulator.buffer)
        return ScalarPlace(name)

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

    def _rows_of_block(self, length: str) -> str:
        """Have the host say how many rows of a length a tile holds."""
        lanes = max(LANES.get(dtype, 16) for dtype in self._tensors.dtypes.values())
        return self._writer.whole(f"cut_rows_{length}", f"max(1, tile // align({length}, {lanes}))")
