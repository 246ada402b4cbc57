"""Running sums and products along the vector axis, by instructions on whole tiles.

Every element takes in the one that lies 1, 2, 4 .. before it (behind it, from the end), so that a tile of n
elements takes log2(n) steps (Hillis and Steele, Data Parallel Algorithms, CACM 29(12), 1986). The first three
steps cross blocks of 32 bytes and gather; all others add from a boundary on.
"""

from __future__ import annotations

from agents.ascend_craft.synthesis.instructions import COMBINE, NEUTRAL
from agents.ascend_craft.synthesis.places import Buffers

_LANES = 8  # floats of a block of 32 bytes
_DOUBLE_STEPS = 6  # 8, 16; 32, 64; .. up to 16384 elements


def scan_lines(
    buffers: Buffers, extra: tuple[str, str, bool], source: str, dst: str, carry: str, count: str
) -> list[str]:
    """Return the lines that scan a tile of ``n`` elements.

    Args:
        buffers: of the program.
        extra: kind, axis, and whether it goes from the end.
        source: buffer of the tile.
        dst: buffer of the outcome.
        carry: scalar that goes from tile to tile.
        count: elements of the tile.
    """
    kind, _, backwards = extra
    one, other = (buffers.declare(name, "tile + 16", "f32") for name in ("ladder", "rung"))
    places = buffers.declare("places", "tile", "i32")
    op, neutral = COMBINE[kind], NEUTRAL[kind]
    lines = [f"arange({places}, 0, {count})", f"muls({places}, {places}, 4, {count})"]
    lines += _padded(one, other, source, neutral, count, backwards)
    shifted = buffers.declare("shifted", "tile", "f32")
    for step in (1, 2, 4):
        base = 4 * (step if backwards else _LANES - step)
        place = "" if backwards else f"[{_LANES}]"
        lines.append(f"gather({shifted}, {one}, {places}, {base}, {count})")
        lines.append(f"{op}({one}{place}, {one}{place}, {shifted}, {count})")
    lines += [
        f"for round in range(0, {_DOUBLE_STEPS}):",
        "    span = 8 << (2 * round)",
        "    if span < " + count + ":",
    ]
    lines += [f"        {line}" for line in _step(op, other, one, "span", count, backwards)]
    lines += ["        if 2 * span < " + count + ":"]
    lines += [f"            {line}" for line in _step(op, one, other, "2 * span", count, backwards)]
    lines += ["        else:", f"            copy({one}, {other}, {count} + {_LANES})"]
    combine = {"sum": "adds", "prod": "muls", "max": "maxs", "min": "mins"}[kind]
    start = "" if backwards else f"[{_LANES}]"
    lines.append(f"{combine}({dst}, {one}{start}, {carry}, {count})")
    lines.append(f"{carry} = read({dst}, {'0' if backwards else f'{count} - 1'})")
    return lines


def _padded(one: str, other: str, source: str, neutral: str, count: str, backwards: bool) -> list[str]:
    """Put a tile beside a block of neutral elements: before it, or behind it from the end."""
    if backwards:
        return [
            f"fill({one}, {neutral}, {count} + 8)",
            f"copy({one}, {source}, {count})",
            f"fill({other}, {neutral}, {count} + 8)",
        ]
    return [
        f"fill({one}, {neutral}, 8)",
        f"fill({other}, {neutral}, 8)",
        f"copy({one}[8], {source}, {count})",
    ]


def _step(op: str, to: str, old: str, reach: str, count: str, backwards: bool) -> list[str]:
    """Combine each element with the one at ``reach`` of it; those that have none stay."""
    if backwards:
        return [
            f"copy({to}, {old}, {count})",
            f"{op}({to}, {old}, {old}[{reach}], {count} - {reach})",
        ]
    return [
        f"copy({to}[8], {old}[8], {reach})",
        f"{op}({to}[8 + {reach}], {old}[8 + {reach}], {old}[8], {count} - {reach})",
    ]
