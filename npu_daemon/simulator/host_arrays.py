"""Arrays of variable length that are set to zero where they are declared: GCC takes them, clang does not.

``uint32_t list[count] = {0};`` becomes a declaration and a call that clears the array. Only where clang has
refused one is text changed: of that array, and of those in the same file with the same extent. Lines stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ascend_gym.core.records import Diagnostic

REFUSED = "variable-sized object may not be initialized"
_CLEARED = re.compile(r"\b(\w+)[ \t]*\[([^][\n]+)\][ \t]*=[ \t]*\{[ \t]*0?[ \t]*\}[ \t]*;")


def refused_lines(diagnostics: Iterable[Diagnostic]) -> dict[str, list[int]]:
    """Return by file the lines, counted from 1, at which clang refuses to initialise an array."""
    lines: dict[str, list[int]] = {}
    for each in diagnostics:
        if each.message.startswith(REFUSED) and each.file and each.line:
            lines.setdefault(each.file, []).append(each.line)
    return lines


def with_cleared_arrays(text: str, lines: Sequence[int]) -> str:
    """Return a source whose arrays at some lines, and those of the same extents, are cleared by a call."""
    rows = text.split("\n")
    chosen = [rows[line - 1] for line in lines if line <= len(rows)]
    extents = {extent.strip() for row in chosen for _, extent in _CLEARED.findall(row)}

    def cleared(found: re.Match[str]) -> str:
        name, extent = found.groups()
        if extent.strip() not in extents:
            return found[0]
        return f"{name}[{extent}]; __builtin_memset({name}, 0, sizeof({name}));"

    return _CLEARED.sub(cleared, text)
