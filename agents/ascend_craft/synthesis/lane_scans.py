"""Running sums, products and extremes of many rows: 16 rows at a time become 16 lanes.

Transposed, the element before another lies 16 elements before it, on a boundary of 32 bytes, so that each of
the log2 steps of a scan (Hillis and Steele, Data Parallel Algorithms, CACM 29(12), 1986) is a plain
instruction on a whole tile, and what rows carry from tile to tile is one vector of 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agents.ascend_craft.synthesis.graph import Node, descendants
from agents.ascend_craft.synthesis.instructions import COMBINE, NEUTRAL
from agents.ascend_craft.synthesis.looks import Copied
from agents.ascend_craft.synthesis.places import Vector
from agents.ascend_craft.synthesis.positions import PositionStage

if TYPE_CHECKING:
    from agents.ascend_craft.synthesis.section_writer import SectionWriter

MANY_ROWS = 64
"""Rows from which it pays: fewer leave most cores without work."""

_ROWS = 16
_DOUBLE_STEPS = 5  # 1, 2; 4, 8; .. up to 512 columns


class LaneScan:
    """Writes a section that has one scan along its rows.

    Args:
        owner: writes the section.
        scan: the scan.
    """

    def __init__(self, owner: SectionWriter, scan: Node) -> None:
        self._owner, self._writer, self._scan = owner, owner._writer, scan
        self._kind, _, self._backwards = scan.extra

    def write(self, outer: str) -> str:
        """Write it; return how many cores it can use.

        Args:
            outer: axis that numbers the rows.
        """
        owner, writer, vector = self._owner, self._writer, self._owner._section.vector
        buffers = writer.buffers
        for name in ("rows", "lanes", "other_lanes"):
            buffers.declare(name, "tile", "f32")
        buffers.declare("carry", str(_ROWS), "f32")
        first, count = f"first{owner._id()}", f"count{owner._id()}"
        span = writer.whole("cut_span", f"tile // {_ROWS}")
        writer.say(f"{first}, {count} = share({outer}, {_ROWS})")
        with writer.block(f"for top, height in tiles({count}, {_ROWS}):"):
            owner._index[outer] = f"({first} + top)"
            writer.stage("compute", [f"fill(carry, {NEUTRAL[self._kind]}, {_ROWS})"])
            if self._backwards:
                with writer.block(f"for step in range(0, ceil_div({vector}, {span})):"):
                    writer.say(
                        f"back = (ceil_div({vector}, {span}) - 1 - step) * {span}",
                        f"reach = min({span}, {vector} - back)",
                    )
                    self._tile(outer, "back", "reach")
            else:
                with writer.block(f"for at, n in tiles({vector}, {span}):"):
                    self._tile(outer, "at", "n")
        return f"ceil_div({outer}, {_ROWS})"

    def _tile(self, outer: str, at: str, count: str) -> None:
        """Write the stages of one tile of 16 rows."""
        owner = self._owner
        owner._vector_at, owner._count = at, count
        owner.begin_block(outer, "height")
        roots = owner._section.roots
        values = [root.value for root in roots]
        before = [n for n in descendants([self._scan.args[0]], owner.is_known) if not owner.is_known(n)]
        after = list(descendants(values, lambda n: owner.is_known(n) or n is self._scan))
        after = [n for n in after if not owner.is_known(n) and n is not self._scan]
        copied = owner._loads([*before, *(node for node in after if node not in before)])
        loads, loaded = copied.loads, copied.buffers
        wide = {load.removeprefix("load(").split(",")[0] for load in loads if "rows=" in load}
        lines = self._into_rows(before, loaded, wide)
        lines += self._scanned()
        owner._known[id(self._scan)] = Vector("rows")
        own = {key: each for key, each in loaded.items() if key in {id(node) for node in after}}
        stage = PositionStage(owner, after, Copied(buffers=own))
        outputs = {id(root.value): owner._out(root) for root in roots}
        stage.run(values, owner._targets(outputs, values))
        for root in roots:
            stage.finish(root, outputs[id(root.value)], None)
        del owner._known[id(self._scan)]
        # rows of the buffer begin where those of the lanes do, at whole blocks of 16
        ready = owner._for_each_line(stage.lines, {*wide, *outputs.values()})
        lines += [line.replace("rows,", f"rows[line * {self._pitch()}],") for line in ready]
        self._writer.stage("copyin", loads)
        self._writer.stage("compute", lines)
        self._writer.stage("copyout", [owner._store(root) for root in roots])
        owner.end_block()

    def _pitch(self) -> str:
        return f"align({self._owner._count}, 16)"

    def _into_rows(
        self, before: Sequence[Node], loaded: dict[int, tuple[str, str]], wide: set[str]
    ) -> list[str]:
        """Compute what is scanned, one row after the other."""
        owner, source = self._owner, self._scan.args[0]
        mine = {id(node) for node in before}
        own = {key: each for key, each in loaded.items() if key in mine}
        stage = PositionStage(owner, before, Copied(buffers=own))
        stage.run([source], {id(source): "rows"})
        stage.into(source, "rows")
        ready = owner._for_each_line(stage.lines, wide)
        return [
            f"fill(rows, {NEUTRAL[self._kind]}, {_ROWS} * {self._pitch()})",
            *(line.replace("(rows,", f"(rows[line * {self._pitch()}],") for line in ready),
        ]

    def _scanned(self) -> list[str]:
        """Return the instructions that scan the buffer of rows."""
        op, whole = COMBINE[self._kind], f"{_ROWS} * {self._pitch()}"
        last = f"[{whole} - {_ROWS}]"
        begin, end = (last, "") if self._backwards else ("", last)
        lines = [
            f"rows_to_lanes(lanes, rows, {self._pitch()}, {_ROWS}, {whole})",
            f"{op}(lanes{begin}, lanes{begin}, carry, {_ROWS})",
            f"for round in range(0, {_DOUBLE_STEPS}):",
            f"    distance = {_ROWS} << (2 * round)",
            f"    if distance < {whole}:",
            *(f"        {line}" for line in self._step(op, "other_lanes", "lanes", "distance", whole)),
            f"        if 2 * distance < {whole}:",
            *(
                f"            {line}"
                for line in self._step(op, "lanes", "other_lanes", "2 * distance", whole)
            ),
            "        else:",
            f"            copy(lanes, other_lanes, {whole})",
        ]
        return [*lines, f"copy(carry, lanes{end}, {_ROWS})", f"lanes_to_rows(rows, lanes, 1, {whole})"]

    def _step(self, op: str, to: str, old: str, distance: str, whole: str) -> list[str]:
        """Combine each element with the one at a distance; those that have none stay."""
        if self._backwards:
            left = f"{whole} - {distance}"
            return [
                f"copy({to}[{left}], {old}[{left}], {distance})",
                f"{op}({to}, {old}, {old}[{distance}], {left})",
            ]
        return [
            f"copy({to}, {old}, {distance})",
            f"{op}({to}[{distance}], {old}[{distance}], {old}, {whole} - {distance})",
        ]
