"""What a program is written with: lines, buffers, and what the host hands over."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from agents.ascend_craft.synthesis.graph import Number
from agents.ascend_craft.synthesis.places import Buffers
from agents.ascend_craft.synthesis.tracing import TensorShape

LARGEST = "3.4028234e38"
"""Stands for infinity."""

_UB_FLOATS = 48000
_MAX_TILE = 4096
_SEVERAL_TILES = re.compile(r"(\d+) \* tile(?: \+ (\d+))?")
CORE_LIMIT = 'knob("core_limit", 64, [40, 32, 24, 16, 8])'


@dataclass(frozen=True)
class Tensors:
    """The tensors of an operator.

    Attributes:
        inputs: inputs in order.
        outputs: outputs in order.
        dtypes: element type in the language, by name.
        attributes: type of each attribute, by name.
    """

    inputs: Sequence[TensorShape]
    outputs: Sequence[TensorShape]
    dtypes: Mapping[str, str]
    attributes: Mapping[str, str]


class Writer:
    """Lines of a kernel with their indentation, buffers, and what the host hands over."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.buffers = Buffers()
        self.host: dict[str, str] = {}
        self.wholes: list[str] = []
        self.floats: dict[str, str] = {}
        self.seen: set[str] = set()  # buffers of views
        self.depth, self._scalars = 1, 0

    def say(self, *lines: str) -> None:
        """Add lines."""
        self.lines += ["    " * self.depth + line for line in lines]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add a head and indent what follows."""
        self.say(head)
        self.depth += 1
        yield
        self.depth -= 1

    def stage(self, kind: str, lines: Sequence[str]) -> None:
        """Add a stage, unless it is empty."""
        if lines:
            with self.block(f"with {kind}():"):
                self.say(*lines)

    def fresh(self) -> str:
        """Return the name of a new scalar."""
        self._scalars += 1
        return f"k{self._scalars}"

    def whole(self, name: str, text: str) -> str:
        """Have the host compute a whole number for the kernel."""
        if name not in self.host:
            self.host[name] = text
            self.wholes.append(name)
        return name

    def widest(self, text: str) -> None:
        """Have the host make tiles that hold so many elements, if they may be as long."""
        known = self.host.get("widest")
        self.host["widest"] = text if known is None else f"max({known}, {text})"

    def named(self, text: str) -> str:
        """Have the host compute a whole number for the kernel; equal texts have one name."""
        for name, known in self.host.items():
            if known == text and name in self.wholes:
                return name
        return self.whole(f"p{len(self.wholes)}", text)

    def number(self, number: Number) -> str:
        """Return the text of a number in the kernel: a literal, or what the host hands over."""
        if number.literal and math.isinf(number.value):
            return LARGEST if number.value > 0 else f"(-{LARGEST})"
        if number.literal:
            return repr(float(number.value)) if number.value >= 0 else f"({float(number.value)!r})"
        if number.text not in self.floats:
            self.floats[number.text] = f"c{len(self.floats)}"
        return self.floats[number.text]


def shorter(tile: int) -> list[int]:
    """Return shorter tiles to try, in whole repeats."""
    parts = {tile * share // 8 // 64 * 64 for share in (6, 4, 3, 2, 1)}
    return sorted((part for part in parts if 64 <= part < tile), reverse=True)


def tile_of(sizes: Mapping[str, tuple[str, str]]) -> int:
    """Return the longest tile with which all buffers fit, queues doubled: a multiple of 64 elements."""
    whole, fixed = 0.0, 0
    for name, (size, dtype) in sizes.items():
        width = {"f32": 1.0, "i32": 1.0, "f16": 0.5, "T": 1.0, "u8": 0.25}[dtype]
        copies = 2 if name.endswith(("_in", "_out", "_one")) else 1
        several = _SEVERAL_TILES.fullmatch(size)
        if several:
            whole, fixed = whole + int(several[1]) * width * copies, fixed + int(several[2] or 0) * copies
        elif size == "tile":
            whole += width * copies
        elif size == "tile + 16":
            whole, fixed = whole + width * copies, fixed + 32
        elif size == "tile // 8":
            whole += width / 8
        elif size == "tile // 4 + 128":
            whole, fixed = whole + 0.25, fixed + 128
        else:
            fixed += int(size) * copies if size.isdigit() else 0
        fixed += 8 * copies
    tile = int((_UB_FLOATS - fixed) / max(whole, 1.0)) // 64 * 64
    return max(64, min(tile, _MAX_TILE))
