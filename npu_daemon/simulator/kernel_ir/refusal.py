"""Why a kernel's IR is not accepted."""

from __future__ import annotations

import re

_PART = re.compile(r"(\d{1,4})(?=[A-Za-z_])")
_PREFIX = re.compile(r"_ZN?K?(?:TV|TI|TS|GV)?N?K?")


class RefusedIr(Exception):
    """Ends the reading of a module whose content is not on the lists of what is allowed.

    Attributes:
        message: what was found and what to write in its place.
        debug: the ``!dbg`` number of the instruction or function, if it has one.
        unprovided: whether a compiler would not take it: it is part of Ascend C, and only the simulator does
            not have it, or of the C library or of C++, and kernels do not have it.
        places: file and line, innermost first, where they are known.
    """

    def __init__(self, message: str, debug: str = "", *, unprovided: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.debug = debug
        self.unprovided = unprovided
        self.places: list[tuple[str, int]] = []


def readable_name(symbol: str) -> str:
    """Return the qualified name in a mangled symbol, without template arguments and parameters.

    The time is linear in the length of the symbol, and the answer is no longer than it.
    """
    prefix = _PREFIX.match(symbol)
    if prefix is None:
        return symbol
    parts, position = [], prefix.end()
    while found := _PART.match(symbol, position):
        length, begin = int(found[1]), found.end()
        parts.append(symbol[begin : begin + length])
        position = begin + length
    return "::".join(parts) or symbol
