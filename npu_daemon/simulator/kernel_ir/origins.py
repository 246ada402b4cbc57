"""Whose text a call is in: that of Ascend C, which the simulator's headers are, or the candidate's own.

An exported function costs what its caller pays to call it. Kernels call Ascend C, whose functions do so for
them; a kernel that called the inside of it would leave their work out, and would be none on the device.
A header calls what it names: templates that take a kernel's types call nothing else on behalf of them. No
macro of a kernel changes what a header says, since all of them are read before it (``headers``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set

from npu_daemon.simulator.kernel_ir.refusal import readable_name

ROOT = "/asim"  # where compilers of kernels see the simulator's headers

_LOCATION = re.compile(
    r"(?:distinct )?!DILocation\(line: \d+(?:, column: \d+)?, scope: !(\d+)(?:, inlinedAt: !(\d+))?"
)
_BLOCK = re.compile(r"(?:distinct )?!DILexicalBlock(?:File)?\(scope: !(\d+)")
_FUNCTION = re.compile(r"(?:distinct )?!DISubprogram\(.*?\bfile: !(\d+)")
_FILE = re.compile(
    r'!DIFile\(filename: "([^"]*)", directory: "[^"]*", checksumkind: CSK_MD5, checksum: "([0-9a-f]{32})"\)'
)
_ASCEND_C = (f"{ROOT}/asim/api/", f"{ROOT}/kernel/")
_MAX_DEPTH = 1000

Headers = Mapping[str, Set[str]]
"""Names of the exported functions that a header names, by the mark of the header."""


class Origins:
    """Tells the calls of one module apart.

    Args:
        nodes: its debug metadata by number.
        headers: what ``headers.header_marks`` returns.
    """

    def __init__(self, nodes: Mapping[str, str], headers: Headers) -> None:
        self._nodes = nodes
        self._headers = headers
        self._files: dict[str, str] = {}

    def in_ascend_c(self, debug: str, symbol: str) -> bool:
        """Whether a function of Ascend C makes a call, itself or by what it is made of.

        Args:
            debug: ``!N`` of the call, or nothing.
            symbol: what is called; the innermost header names it.
        """
        number, outermost = debug[1:], ""
        for _ in range(_MAX_DEPTH):
            location = _LOCATION.match(self._nodes.get(number, ""))
            header = self._header_of(location[1]) if location else ""
            if not outermost and last_name(symbol) not in self._headers.get(header, ()):
                return False
            outermost = header or outermost
            number = (location[2] or "") if location and header else ""
            if not number:
                return outermost.startswith(_ASCEND_C)
        return False

    def _header_of(self, scope: str) -> str:
        """Return the mark of the simulator's header that the function of a scope is in, or nothing."""
        known = self._files.get(scope)
        if known is None:
            known = self._files[scope] = self._read_header(scope)
        return known

    def _read_header(self, scope: str) -> str:
        node = self._nodes.get(scope, "")
        for _ in range(_MAX_DEPTH):
            block = _BLOCK.match(node)
            if block is None:
                break
            node = self._nodes.get(block[1], "")
        function = _FUNCTION.match(node)
        file = _FILE.fullmatch(self._nodes.get(function[1], "")) if function else None
        mark = mark_of(file[1], file[2]) if file else ""
        return mark if mark in self._headers else ""


def last_name(symbol: str) -> str:
    """Return the name of a function without the namespaces that it is in."""
    return readable_name(symbol).rpartition("::")[2]


def mark_of(path: str, digest: str) -> str:
    """Return the mark of a header: its path and its digest, the one that clang writes beside a file's name.

    It writes none beside a name that a directive has made up.
    """
    return f"{path} {digest}"
