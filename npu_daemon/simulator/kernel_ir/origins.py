"""Whose text a call is in: that of Ascend C, which the simulator's headers are, or the candidate's own.

An exported function costs what its caller pays to call it. Kernels call Ascend C, whose functions do so for
them; a kernel that called the inside of it would leave their work out, and would be none on the device.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Set
from pathlib import Path

_LOCATION = re.compile(
    r"(?:distinct )?!DILocation\(line: \d+(?:, column: \d+)?, scope: !(\d+)(?:, inlinedAt: !(\d+))?"
)
_BLOCK = re.compile(r"(?:distinct )?!DILexicalBlock(?:File)?\(scope: !(\d+)")
_FUNCTION = re.compile(r"(?:distinct )?!DISubprogram\(.*?\bfile: !(\d+)")
_FILE = re.compile(
    r'!DIFile\(filename: "([^"]*)", directory: "[^"]*", checksumkind: CSK_MD5, checksum: "([0-9a-f]{32})"\)'
)
_ROOT = "/asim"  # where compilers of kernels see the simulator's headers
_FOLDERS = ("asim", "kernel")
_ASCEND_C = (f"{_ROOT}/asim/api/", f"{_ROOT}/kernel/")
_MAX_DEPTH = 1000


def header_marks(include: Path) -> list[str]:
    """Return the marks of the simulator's headers for kernels: the path and the digest of each.

    A digest is the one that clang writes beside a file's name. It writes none beside a name that a
    directive has made up.
    """
    headers = sorted(file for name in _FOLDERS for file in (include / name).rglob("*.h"))
    return [
        _mark(f"{_ROOT}/{file.relative_to(include)}", hashlib.md5(file.read_bytes()).hexdigest())
        for file in headers
    ]


class Origins:
    """Tells the calls of one module apart.

    Args:
        nodes: its debug metadata by number.
        headers: what ``header_marks`` returns.
    """

    def __init__(self, nodes: Mapping[str, str], headers: Set[str]) -> None:
        self._nodes = nodes
        self._headers = headers
        self._files: dict[str, str] = {}

    def in_ascend_c(self, debug: str) -> bool:
        """Whether a function of Ascend C makes a call, itself or by what it is made of.

        Args:
            debug: ``!N`` of the call, or nothing.
        """
        number, outermost = debug[1:], ""
        for _ in range(_MAX_DEPTH):
            location = _LOCATION.match(self._nodes.get(number, ""))
            header = self._header_of(location[1]) if location else ""
            outermost = header or outermost
            number = (location[2] or "") if location and header else ""
            if not number:
                return outermost.startswith(_ASCEND_C)
        return False

    def _header_of(self, scope: str) -> str:
        """Return the path of the simulator's header that the function of a scope is in, or nothing."""
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
        return file[1] if file and _mark(file[1], file[2]) in self._headers else ""


def _mark(path: str, digest: str) -> str:
    return f"{path} {digest}"
