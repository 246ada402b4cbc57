"""Whose text a call is in: that of Ascend C, which the simulator's headers are, or the candidate's own.

An exported function costs what its caller pays to call it. Kernels call Ascend C, whose functions do so for
them; a kernel that called the inside of it would leave their work out, and would be none on the device.
A header calls what it names: templates that take a kernel's types call nothing else on behalf of them. No
macro of a kernel changes what a header says, since all of them are read before it (``kernel_build``).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

from npu_daemon.simulator.kernel_ir.refusal import readable_name

_LOCATION = re.compile(
    r"(?:distinct )?!DILocation\(line: \d+(?:, column: \d+)?, scope: !(\d+)(?:, inlinedAt: !(\d+))?"
)
_BLOCK = re.compile(r"(?:distinct )?!DILexicalBlock(?:File)?\(scope: !(\d+)")
_FUNCTION = re.compile(r"(?:distinct )?!DISubprogram\(.*?\bfile: !(\d+)")
_FILE = re.compile(
    r'!DIFile\(filename: "([^"]*)", directory: "[^"]*", checksumkind: CSK_MD5, checksum: "([0-9a-f]{32})"\)'
)
_ROOT = "/asim"  # where compilers of kernels see the simulator's headers
_FOLDERS = ("", "kernel")
_PRECOMPILED = "asim_kernel.h"
# Read where a kernel includes them, ahead of its own text.
READ_FIRST = ("asim/api/matmul.h", "asim/api/matmul_config.h")
_ASCEND_C = (f"{_ROOT}/asim/api/", f"{_ROOT}/kernel/")
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)', re.MULTILINE)
_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*")
_MAX_DEPTH = 1000

Headers = Mapping[str, Set[str]]
"""Names of the exported functions that a header names, by the mark of the header."""


def header_marks(include: Path, exported: Set[str]) -> dict[str, list[str]]:
    """Return the marks of the headers that kernels can call, and the exported functions that each names.

    A mark is the path of a header and its digest: the one that clang writes beside a file's name. It writes
    none beside a name that a directive has made up.

    Args:
        include: folder of the simulator's headers.
        exported: symbols.
    """
    names = {_last_name(symbol) for symbol in exported}
    marks = {}
    for path in sorted({*precompiled_headers(include), *READ_FIRST}):
        content = (include / path).read_bytes()
        mark = _mark(f"{_ROOT}/{path}", hashlib.md5(content).hexdigest())
        marks[mark] = sorted(names.intersection(_IDENTIFIER.findall(content.decode())))
    return marks


def precompiled_headers(include: Path) -> set[str]:
    """Return the headers that the precompiled one consists of, but for lists that are read more than once."""
    known, waiting = {_PRECOMPILED}, [_PRECOMPILED]
    while waiting:
        for path in _included(include, waiting.pop()):
            if path not in known:
                known.add(path)
                waiting.append(path)
    return {path for path in known if path.endswith(".h")}


def _included(include: Path, path: str) -> Iterator[str]:
    for name in _INCLUDED.findall((include / path).read_text("utf-8")):
        for folder in (Path(path).parent, *_FOLDERS):
            if (include / folder / name).is_file():
                yield str(folder / Path(name))
                break


def _last_name(symbol: str) -> str:
    return readable_name(symbol).rpartition("::")[2]


class Origins:
    """Tells the calls of one module apart.

    Args:
        nodes: its debug metadata by number.
        headers: what ``header_marks`` returns.
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
            if not outermost and _last_name(symbol) not in self._headers.get(header, ()):
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
        mark = _mark(file[1], file[2]) if file else ""
        return mark if mark in self._headers else ""


def _mark(path: str, digest: str) -> str:
    return f"{path} {digest}"
