"""The source files of an operator folder, and which of them are the main ones."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from ascend_gym.core.cpp_text import INCLUDE_DIRECTIVE
from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import Candidate, SourceFile, Sources
from ascend_gym.core.toml_file import reason_of

SOURCE_SUFFIXES = frozenset({".cpp", ".cc", ".h", ".hpp"})

_HEADER_SUFFIXES = (".h", ".hpp")
_TILING_MARK = "TilingContext"
_KERNEL_MARK = re.compile(r"\b__global__\b")


def read_candidate(
    folder: Path, op_name: str, *, tiling: str | None = None, kernel: str | None = None
) -> Candidate:
    """Read the sources below ``op_host`` and ``op_kernel`` of an operator folder.

    A header of the kernel that host files include, too, belongs to both sides.

    Args:
        folder: the operator folder.
        op_name: snake_case operator name, which decides between several possible main files.
        tiling: main host file relative to the folder; ``None`` looks for the tiling function.
        kernel: main kernel file relative to the folder; ``None`` looks for the ``__global__`` entry.

    Raises:
        OperatorFormatError: a side has no sources, or its main file cannot be determined.
    """
    host = [file for file in _read_side(folder, "op_host") if not _is_aclnn_layer(file.path)]
    device = _read_side(folder, "op_kernel")
    host += _shared_headers(host, device)
    return Candidate(
        host=_sources(
            folder,
            host,
            tiling,
            preferred=(f"op_host/{op_name}_tiling.cpp", f"op_host/{op_name}.cpp"),
            holds_main=lambda text: _TILING_MARK in text,
            what="a tiling function (gert::TilingContext) in op_host; name it with [operator] tiling",
        ),
        kernel=_sources(
            folder,
            device,
            kernel,
            preferred=(f"op_kernel/{op_name}.cpp",),
            holds_main=lambda text: _KERNEL_MARK.search(text) is not None,
            what="a __global__ kernel entry in op_kernel; name it with [operator] kernel",
        ),
    )


def _read_side(folder: Path, side: str) -> list[SourceFile]:
    paths = sorted(
        path for path in (folder / side).rglob("*") if path.is_file() and path.suffix in SOURCE_SUFFIXES
    )
    if not paths:
        raise OperatorFormatError(f"{folder}: no C++ sources below {side}/")
    return [_source_file(folder, path) for path in paths]


def _shared_headers(host: Sequence[SourceFile], device: Sequence[SourceFile]) -> list[SourceFile]:
    """Return the kernel's headers that host files include: declarations of structures and tiling keys."""
    headers = {file.path: file for file in device if file.path.endswith(_HEADER_SUFFIXES)}
    waiting, found = list(host), {}
    while waiting:
        file = waiting.pop()
        for name in INCLUDE_DIRECTIVE.findall(file.text):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(file.path), name))
            if path in headers and path not in found:
                found[path] = headers[path]
                waiting.append(headers[path])
    return [found[path] for path in sorted(found)]


def _source_file(folder: Path, path: Path) -> SourceFile:
    text = read_source(path)
    try:
        return SourceFile(path=path.relative_to(folder).as_posix(), text=text)
    except ValidationError as error:
        raise OperatorFormatError(f"{path}: {reason_of(error)}") from error


def read_source(path: Path) -> str:
    """Return the text of a source file.

    Raises:
        OperatorFormatError: it cannot be read as UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorFormatError(f"{path}: cannot be read as UTF-8 source: {error}") from error


def choose_main(folder: Path, found: Sequence[str], preferred: Sequence[str], what: str) -> str:
    """Return the main file among those found: the first preferred one, or the only one.

    Args:
        folder: of the operator, for the message.
        found: paths of candidates, relative to the folder.
        preferred: paths that come first, best first.
        what: what the file has to hold, for the message.

    Raises:
        OperatorFormatError: there is none, or no telling which.
    """
    chosen = next((path for path in preferred if path in found), None)
    if chosen is None and len(found) == 1:
        chosen = found[0]
    if chosen is None:
        raise OperatorFormatError(f"{folder}: expected one file with {what}; candidates: {list(found)}")
    return chosen


def _is_aclnn_layer(path: str) -> bool:
    """Say whether a host file is part of the aclnn API layer, which a kernel launch does not need."""
    name = Path(path).name
    return name.startswith("aclnn_") or Path(path).stem.endswith("_l0")


def _sources(
    folder: Path,
    files: Sequence[SourceFile],
    override: str | None,
    *,
    preferred: Sequence[str],
    holds_main: Callable[[str], bool],
    what: str,
) -> Sources:
    by_path = {file.path: file for file in files}
    if override is not None:
        if override not in by_path:
            raise OperatorFormatError(f"{folder}: main file {override!r} is not among {sorted(by_path)}")
        return Sources(files=tuple(files), main=override)
    found = [path for path, file in by_path.items() if path.endswith(".cpp") and holds_main(file.text)]
    return Sources(files=tuple(files), main=choose_main(folder, found, preferred, what))
