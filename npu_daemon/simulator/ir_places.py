"""Which line of a source an instruction of LLVM IR comes from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from ascend_gym.core.records import Sources

Place = tuple[str, int]  # file and line

_DEBUG = re.compile(r"!dbg !(\d+)")
_LOCATION = re.compile(r"DILocation\(line: (\d+)")
_REFERENCE = r"\b{}: !(\d+)"
_FILE_NAME = re.compile(r'DIFile\(filename: "([^"]*)"')
_MAX_STEPS = 64


def place_of(lines: Sequence[str], number: int, sources: Sources) -> Place | None:
    """Return the place in ``sources`` that an instruction came from, through inlined calls, or ``None``.

    Args:
        lines: a module as LLVM prints it.
        number: of the instruction's line, from 0.
        sources: what was compiled.
    """
    debug = _DEBUG.search(lines[number])
    nodes = _nodes(lines) if debug else {}
    location = debug[1] if debug else None
    paths = {file.path for file in sources.files}
    for _ in range(_MAX_STEPS):
        node = nodes.get(location or "", "")
        found = _LOCATION.search(node)
        if found is None:
            return None
        file = _file_of(nodes, _reference(node, "scope"))
        if file in paths:
            return file, int(found[1])
        location = _reference(node, "inlinedAt")
    return None


def _nodes(lines: Sequence[str]) -> dict[str, str]:
    """Return the content of each numbered piece of metadata."""
    rows = (line.partition(" = ") for line in lines if line.startswith("!"))
    return {name.removeprefix("!"): content for name, _, content in rows}


def _file_of(nodes: dict[str, str], scope: str | None) -> str | None:
    """Return the source file of a scope, relative to where the compiler ran."""
    node = nodes.get(scope or "", "")
    name = _FILE_NAME.search(nodes.get(_reference(node, "file") or "", ""))
    return PurePosixPath(name[1]).as_posix() if name else None


def _reference(node: str, field: str) -> str | None:
    found = re.search(_REFERENCE.format(field), node)
    return found[1] if found else None
