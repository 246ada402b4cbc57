"""Marks of basic blocks: each says, when it is executed, that it was reached, and a table says where it lies.

Only builds that are made to find out what cases reach have them (``npu_daemon/coverage.py``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from npu_daemon.simulator.kernel_ir.debug_info import Place, places_of

MarkedBlock = tuple[Place, ...]
"""The lines that a block has instructions of, inlined calls among them; sorted."""


class BlockMarks:
    """The marked blocks of a module, numbered in their order.

    Attributes:
        blocks: source places of each.
    """

    def __init__(self) -> None:
        self.blocks: list[MarkedBlock] = []

    def calls(self, callback: str, places: Iterable[str], nodes: Mapping[str, str]) -> list[str]:
        """Return what marks a block: a call with its number, none for a block without source places.

        Args:
            callback: name of the function that is told of it.
            places: numbers of the ``!dbg`` nodes of its instructions.
            nodes: debug metadata by number.
        """
        lines = {place for number in places for place in places_of(nodes, number) if place[1] > 0}
        if not lines:
            return []
        self.blocks.append(tuple(sorted(lines)))
        return [f"  call void @{callback}(i32 {len(self.blocks) - 1})"]

    def write(self, path: Path) -> None:
        """Write the table as JSON: for each block a list of files and lines."""
        path.write_text(json.dumps(self.blocks), encoding="utf-8")


def read_marks(path: Path) -> list[MarkedBlock]:
    """Return the table that ``BlockMarks.write`` wrote.

    Raises:
        ValueError: it is no such table.
    """
    blocks = json.loads(path.read_text("utf-8"))
    return [tuple((str(file), int(line)) for file, line in block) for block in blocks]


def reached_numbers(digits: str) -> set[int]:
    """Return the numbers that hexadecimal digits of eight bits each stand for, lowest number first.

    Raises:
        ValueError: they are no such digits.
    """
    bits = bytes.fromhex(digits + "0" * (len(digits) % 2))
    return {8 * at + bit for at, byte in enumerate(bits) if byte for bit in range(8) if byte >> bit & 1}
