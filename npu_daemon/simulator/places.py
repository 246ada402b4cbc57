"""Which lines of a source an address in a built library comes from.

Debug information follows from a candidate's sources, so a limited process reads it (``line_reader``), and of
what it says no more than a few rows are kept. Where it cannot tell, there is no place.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from pathlib import Path

from npu_daemon.sandbox import Preload, Reach, ResourceLimits, run_limited
from npu_daemon.simulator.task_type import CoreKind

Place = tuple[str | None, int | None]
"""File and line, where they are known."""

PlaceOf = Callable[[Iterable[str]], Place]
"""Picks the place to show from rows ``FILE:LINE``, the innermost first."""

_READER = "npu_daemon.simulator.line_reader"
_PACKAGE_ROOT = Path(__file__).parents[2]
# It reads, and waits for nothing: processor time is what limits it, however busy the host is.
_LIMITS = ResourceLimits(wall_s=120.0, cpu_s=10.0, memory_bytes=2 << 30, file_bytes=0, output_bytes=1 << 18)
_ADDRESS = re.compile(r"[0-9a-f]{1,16}")
_MAX_ADDRESSES = 32
_MAX_TOGETHER = 512
_LINE = re.compile(r"[1-9][0-9]{0,8}")
_OWN_FOLDERS = ("shared/", "op_kernel/", "op_host/")


@cache
def line_reader() -> Preload:
    """Return the program that reads places."""
    found = importlib.util.find_spec("elftools")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("pyelftools is missing; install ascend-gym with its dependencies")
    return Preload(_READER, (_PACKAGE_ROOT, Path(found.origin).parent.parent))


def source_rows(frames: str, library: Path | None) -> list[str]:
    """Return a row ``FILE:LINE`` for each address, inlined calls too; none without addresses or library.

    Args:
        frames: hexadecimal offsets in the library, separated by commas, as a run reports them.
        library: what was running.
    """
    addresses = frames.split(",", _MAX_ADDRESSES)[:_MAX_ADDRESSES]
    if library is None or not all(map(_ADDRESS.fullmatch, addresses)):
        return []
    return _read_rows(addresses, library).splitlines()


def rows_by_frames(frames: Iterable[str], library: Path | None) -> dict[str, list[str]]:
    """Return the rows of each of several lists of addresses, as ``source_rows`` does, by one reading.

    Args:
        frames: lists of hexadecimal offsets, each separated by commas; those of any other form have no rows.
        library: what was running.
    """
    known = {each: each.split(",", _MAX_ADDRESSES)[:_MAX_ADDRESSES] for each in dict.fromkeys(frames)}
    known = {each: addresses for each, addresses in known.items() if all(map(_ADDRESS.fullmatch, addresses))}
    asked = list(dict.fromkeys(address for addresses in known.values() for address in addresses))
    asked = asked[:_MAX_TOGETHER]
    if library is None or not asked:
        return {}
    rows = dict(zip(asked, _read_rows(asked, library).split("\n\n"), strict=False))
    return {
        each: [row for address in addresses for row in rows.get(address, "").splitlines() if row]
        for each, addresses in known.items()
    }


def places_by_frames(
    wanted: Collection[tuple[CoreKind, str]], libraries: Mapping[CoreKind, Path], place_of: PlaceOf
) -> dict[tuple[CoreKind, str], Place]:
    """Return the places of lists of addresses in the libraries of their kinds of core, where they are known.

    Args:
        wanted: kinds of core, each with hexadecimal offsets in its library, separated by commas.
        libraries: what was running, by kind of core.
        place_of: picks the place to show from rows ``FILE:LINE``, the innermost first.
    """
    return {
        (kind, frames): place_of(rows)
        for kind in {kind for kind, _ in wanted}
        for frames, rows in rows_by_frames(
            [frames for its_kind, frames in wanted if its_kind is kind], libraries.get(kind)
        ).items()
    }


def own_place(rows: Iterable[str]) -> Place:
    """Return file and line of the innermost row that lies in the operator's own sources."""
    for row in rows:
        path, _, line = row.rpartition(":")
        begins = [begin for begin in map(path.find, _OWN_FOLDERS) if begin >= 0]
        if begins and _LINE.fullmatch(line):
            return path[min(begins) :], int(line)
    return None, None


def _read_rows(addresses: list[str], library: Path) -> str:
    """Return what the reader prints of some addresses: rows of each, and an empty row behind them."""
    outcome = run_limited(
        [str(library), *addresses],
        cwd=library.parent,
        limits=_LIMITS,
        reach=Reach((library,), keeps_files=False),
        preload=line_reader(),
    )
    return outcome.stdout.decode("utf-8", "replace")
