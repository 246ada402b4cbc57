"""Writes the stages of one position of a section's loops: copy-in, compute, copy-out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agents.ascend_craft.synthesis.graph import Node, NotCoveredError, descendants
from agents.ascend_craft.synthesis.instructions import StageWriter
from agents.ascend_craft.synthesis.looks import Copied, Looks
from agents.ascend_craft.synthesis.places import LANES, Place
from agents.ascend_craft.synthesis.positions import PositionStage
from agents.ascend_craft.synthesis.sections import Root, Section, is_global
from agents.ascend_craft.synthesis.writer import Tensors, Writer


@dataclass(frozen=True)
class Block:
    """Rows that are copied at once and computed one by one.

    Attributes:
        axis: name of the axis that numbers them.
        height: variable with how many there are.
    """

    axis: str
    height: str


class PositionWriter:
    """Writes what is copied and computed at one position.

    Args:
        writer: of the program.
        tensors: of the operator.
        section: the section.
        globals_: where reductions over everything are.
    """

    def __init__(
        self, writer: Writer, tensors: Tensors, section: Section, globals_: Mapping[int, Place]
    ) -> None:
        self._writer, self._tensors, self._section = writer, tensors, section
        self._known: dict[int, Place] = dict(globals_)
        self._index: dict[str, str] = {}
        self._vector_at, self._count = "0", "1"
        self._accumulators: dict[int, Place] = {}
        self._block: Block | None = None

    def _nodes(self) -> list[Node]:
        roots = [root.value for root in self._section.roots]
        return [node for node in descendants(roots, is_global) if not is_global(node)]

    def _carry(self, scan: Node) -> str:
        return f"carry{[node for node in self._nodes() if node.op == 'scan'].index(scan)}"

    def _stage(self) -> StageWriter:
        return StageWriter(
            self._writer.buffers,
            self._known,
            lambda node: self._writer.number(node.extra),
            self._writer.fresh,
            self._count,
            self._section.has_vector,
        )

    def _sequence(
        self,
        values: Sequence[Node],
        roots: Sequence[Root],
        accumulate: Sequence[tuple[Node, Place]] = (),
        keep: Sequence[Node] = (),
    ) -> None:
        """Write copy-in, compute and copy-out of one position of the loops.

        Args:
            values: what is computed.
            roots: what of it is stored or is part of a reduction over everything.
            accumulate: reductions with what they accumulate in.
            keep: what of it stays for later stages.
        """
        needed = [
            node
            for node in descendants(values, lambda n: id(n) in self._known)
            if id(node) not in self._known
        ]
        copied = self._loads(needed)
        loads = copied.loads
        stage = PositionStage(self, needed, copied)
        outputs = {id(root.value): self._out(root) for root in roots if root.output is not None}
        goals = [*(root.value for root in roots), *(node.args[0] for node, _ in accumulate), *keep]
        stage.run(goals, self._targets(outputs, values))
        for root in roots:
            stage.finish(root, outputs.get(id(root.value)), self._accumulators.get(id(root.node)))
        for node, accumulator in accumulate:
            stage.accumulate(node, accumulator)
        for node in keep:
            self._known[id(node)] = stage.kept(node)
        self._writer.stage("copyin", loads)
        self._writer.stage("compute", self._by_line(stage.lines, loads, outputs.values()))
        self._writer.stage("copyout", [self._store(root) for root in roots if root.output is not None])

    def begin_block(self, axis: str, height: str) -> None:
        """Begin with rows that are copied at once."""
        self._block = Block(axis, height)

    def end_block(self) -> None:
        """Go back to single rows."""
        self._block = None

    def is_known(self, node: Node) -> bool:
        """Say whether a node has a place already."""
        return id(node) in self._known

    def _by_line(self, lines: Sequence[str], loads: Sequence[str], outputs: Iterable[str]) -> Sequence[str]:
        """Return instructions for one row as those for each row of a block."""
        if self._block is None or not lines:
            return lines
        wide = {load.removeprefix("load(").split(",")[0] for load in loads if "rows=" in load}
        return self._for_each_line(lines, {*wide, *outputs})

    def _for_each_line(self, lines: Sequence[str], buffers: Collection[str]) -> list[str]:
        """Return instructions as those for each row of a block, of which ``buffers`` hold all rows."""
        assert self._block is not None
        sizes = self._writer.buffers.sizes
        at = {name: f"{name}[line * align({self._count}, {LANES[sizes[name][1]]})]" for name in buffers}
        name = re.compile(rf"\b({'|'.join(sorted(at))})\b")
        inner = [name.sub(lambda match: at[match[1]], line) for line in lines]
        return [f"for line in range(0, {self._block.height}):", *(f"    {line}" for line in inner)]

    def _in_rows(self, node: Node) -> str:
        """Return what tells the rows of a block to a copy; nothing where there is one."""
        axes = self._section.axes_of(node)
        if self._block is None or self._block.axis not in axes:
            return ""
        pitch = " * ".join(axes[axes.index(self._block.axis) + 1 :])
        return f", rows={self._block.height}, pitch={pitch}"

    def _targets(self, outputs: Mapping[int, str], values: Sequence[Node]) -> dict[int, str]:
        generic = {name for name, (_, dtype) in self._writer.buffers.sizes.items() if dtype != "f32"}
        return {
            key: name
            for key, name in outputs.items()
            if name not in generic and self._section.has_vector(next(v for v in values if id(v) == key))
        }

    def _out(self, root: Root) -> str:
        assert root.output is not None
        dtype = self._tensors.dtypes[root.output]
        wide = self._section.has_vector(root.value)
        return self._writer.buffers.declare(
            f"{root.output}_{'out' if wide else 'one'}", "tile" if wide else "8", dtype
        )

    def _store(self, root: Root) -> str:
        count = self._count if self._section.has_vector(root.value) else "1"
        rows = self._in_rows(root.value)
        return f"store({root.output}[{self._at(root.value)}], {self._out(root)}, {count}{rows})"

    def _at(self, node: Node, instead: str | None = None) -> str:
        """Return the place of a tensor's first element at this position of the loops."""
        section, terms = self._section, []
        axes = section.axes_of(node)
        for place, name in enumerate(axes):
            index = self._vector_at if name == section.vector else self._index.get(name, "0")
            if name == section.vector and instead is not None:
                index = instead
            if index != "0":
                terms.append(" * ".join([index, *axes[place + 1 :]]))
        return " + ".join(terms) or "0"

    def _loads(self, needed: Sequence[Node]) -> Copied:
        """Return the copies of a position, and where they bring what."""
        copied = Copied()
        looks, loads, found = Looks(self, copied), copied.loads, copied.buffers
        below_picks = {id(node.args[0]) for node in needed if node.op == "pick"}
        labels = {id(each) for node in needed if node.op == "pick" for each in descendants([node.args[1]])}
        labels |= {id(arg) for node in needed if node.op == "view" for arg in node.args}
        used = {id(arg) for node in needed if node.op not in ("pick", "view") for arg in node.args}
        for node in needed:
            is_label = id(node) in labels and id(node) not in used
            if not is_label and self._section.is_view(node):
                looks.copy(node)
            elif node.op == "input" and (id(node) in used or id(node) not in below_picks | labels):
                dtype = self._tensors.dtypes[node.extra]
                wide = self._section.has_vector(node)
                name = self._writer.buffers.declare(
                    f"{node.extra}_{'in' if wide else 'one'}", "tile" if wide else "8", dtype
                )
                count = self._count if wide else "1"
                loads.append(f"load({name}, {node.extra}[{self._at(node)}], {count}{self._in_rows(node)})")
                found[id(node)] = (name, dtype)
            elif node.op == "pick":
                picked, load = self._pick(node)
                loads.append(load)
                found[id(node)] = (picked, "f32")
        return copied

    def _pick(self, node: Node) -> tuple[str, str]:
        """Write the stages that read which element is chosen; return the buffer and its copy."""
        source, label = node.args
        while label.op == "as":
            label = label.args[0]
        if label.op != "input" or self._tensors.dtypes[source.extra] != "f32":
            raise NotCoveredError("an element chosen by something computed")
        index = self._writer.fresh()
        name = self._writer.buffers.declare(f"{label.extra}_one", "8", self._tensors.dtypes[label.extra])
        self._writer.stage("copyin", [f"load({name}, {label.extra}[{self._at(label)}], 1)"])
        self._writer.stage("compute", [f"{index} = read({name}, 0)"])
        picked = self._writer.buffers.declare(f"{source.extra}_picked", "8", "f32")
        at = self._at(source, instead=index)
        return picked, f"load({picked}, {source.extra}[{at}], 1)"
