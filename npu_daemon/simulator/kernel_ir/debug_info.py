"""Source places of instructions, from the debug metadata of a module."""

from __future__ import annotations

import re
from collections.abc import Mapping

_LOCATION = re.compile(
    r"(?:distinct )?!DILocation\(line: (\d+)(?:, column: (\d+))?, scope: !(\d+)(?:, inlinedAt: !(\d+))?"
)
_FILE_OF = re.compile(r"(?:distinct )?!DI\w+\(.*?\bfile: !(\d+)")
_FILE_NAME = re.compile(r'!DIFile\(filename: "([^"]*)"')
_LINE_OF = re.compile(r"(?:distinct )?!DISubprogram\(.*?\bline: (\d+)")
_MAX_INLINING = 1000

Place = tuple[str, int]


def places_of(nodes: Mapping[str, str], number: str) -> list[Place]:
    """Return file and line of a ``!dbg`` node, innermost first, then where that is inlined, and so on."""
    found: list[Place] = []
    while number and len(found) < _MAX_INLINING:
        node = nodes.get(number, "")
        location = _LOCATION.match(node)
        if location is None:
            line = _LINE_OF.match(node)
            return [*found, *([(_file(nodes, number), int(line[1]))] if line else [])]
        found.append((_file(nodes, location[3]), int(location[1])))
        number = location[4] or ""
    return found


def column_of(nodes: Mapping[str, str], number: str) -> int:
    """Return the column of a ``!dbg`` node, counted from 1 on, or 0 if it has none."""
    location = _LOCATION.match(nodes.get(number, ""))
    return int(location[2] or 0) if location else 0


def _file(nodes: Mapping[str, str], scope: str) -> str:
    """Return the file name of a scope node."""
    file = _FILE_OF.match(nodes.get(scope, ""))
    name = _FILE_NAME.match(nodes.get(file[1], "")) if file else None
    return name[1] if name else ""
