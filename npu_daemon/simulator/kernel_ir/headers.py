"""The simulator's headers that kernels read before any text of their own, and what each of them names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Set
from pathlib import Path

from ascend_gym.core.cpp_text import INCLUDE_DIRECTIVE, code_only
from npu_daemon.simulator.kernel_ir.origins import ROOT, last_name, mark_of

READ_FIRST = "asim/api/matmul.h"
"""Not precompiled: read ahead of the text of kernels that include it."""

_FOLDERS = ("", "kernel")
_PRECOMPILED = "asim_kernel.h"
_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*")


def header_marks(include: Path, exported: Set[str]) -> dict[str, list[str]]:
    """Return the marks of the headers that kernels can call, and the exported functions that each names.

    Args:
        include: folder of the simulator's headers.
        exported: symbols.
    """
    names = {last_name(symbol) for symbol in exported}
    marks = {}
    for path in sorted(headers_below(include, _PRECOMPILED, READ_FIRST)):
        content = (include / path).read_bytes()
        mark = mark_of(f"{ROOT}/{path}", hashlib.md5(content).hexdigest())
        marks[mark] = sorted(names & named_in(content.decode()))
    return marks


def named_in(text: str) -> set[str]:
    """Return the identifiers in the code of a header: not those of comments, strings and paths."""
    code = code_only(INCLUDE_DIRECTIVE.sub("", text))
    return set(_IDENTIFIER.findall(code))


def precompiled_headers(include: Path) -> set[str]:
    """Return the headers that the precompiled one consists of."""
    return headers_below(include, _PRECOMPILED)


def headers_read_first(include: Path) -> set[str]:
    """Return the headers that are read ahead of a kernel's text, beside the precompiled ones."""
    return headers_below(include, READ_FIRST) - precompiled_headers(include)


def headers_below(include: Path, *roots: str) -> set[str]:
    """Return headers and those that they include, but for lists that are read more than once."""
    known, waiting = set(roots), list(roots)
    while waiting:
        for path in _included(include, waiting.pop()):
            if path not in known:
                known.add(path)
                waiting.append(path)
    return {path for path in known if path.endswith(".h")}


def _included(include: Path, path: str) -> Iterator[str]:
    for name in INCLUDE_DIRECTIVE.findall((include / path).read_text("utf-8")):
        for folder in (Path(path).parent, *_FOLDERS):
            if (include / folder / name).is_file():
                yield str(folder / Path(name))
                break
