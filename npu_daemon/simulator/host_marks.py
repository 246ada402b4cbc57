"""Marks of the basic blocks of tiling programs, written into the LLVM IR that their sources became."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npu_daemon.simulator.kernel_ir.block_marks import BlockMarks

_CALLBACK = "asim_host_reached"
_NODE = re.compile(r"^!(\d+) = (.+)$", re.MULTILINE)
_LABEL = re.compile(r'(?:[\w.$-]+|"[^"]*"):')
_DEBUG = re.compile(r"!dbg !(\d+)")
_FIRST = re.compile(r"  %[\w.]+ = (?:phi|landingpad) |          (?:cleanup|catch|filter)\b")


def with_marks(text: str, marks: BlockMarks) -> str:
    """Return a module whose blocks say that they are reached.

    Args:
        text: as clang has printed the module.
        marks: takes the source places of its blocks.
    """
    nodes = dict(_NODE.findall(text))
    lines: list[str] = []
    block: list[str] | None = None
    for line in text.split("\n"):
        if block is None:
            lines.append(line)
            block = [] if line.startswith("define ") and line.endswith("{") else None
        elif line == "}":
            lines += [*_marked(block, marks, nodes), line]
            block = None
        elif _LABEL.match(line):
            lines += [*_marked(block, marks, nodes), line]
            block = []
        else:
            block.append(line)
    return "\n".join([*lines, f"declare void @{_CALLBACK}(i32)", ""])


def _marked(block: list[str], marks: BlockMarks, nodes: dict[str, str]) -> Iterator[str]:
    """Yield the lines of a block, its mark before the first instruction that may follow others."""
    begin = next((at for at, line in enumerate(block) if line and not _FIRST.match(line)), len(block))
    yield from block[:begin]
    if begin < len(block):
        places = {found[1] for line in block if (found := _DEBUG.search(line))}
        yield from marks.calls(_CALLBACK, places, nodes)
    yield from block[begin:]
