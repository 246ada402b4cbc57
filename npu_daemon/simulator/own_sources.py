"""How the simulator's own sources are compiled."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from npu_daemon.simulator.object_store import Part

SOURCES = Path(__file__).parent / "src"
INCLUDE = Path(__file__).parent / "include"
INCLUDES = (f"-I{INCLUDE}", f"-I{INCLUDE / 'kernel'}")
HOST_INCLUDE = f"-I{INCLUDE / 'host'}"
STANDARD_HEADERS = SOURCES / "support" / "standard.h"
_OPTIONS = ("-std=c++17", "-O2", "-fPIC", "-ffp-contract=off", HOST_INCLUDE)
# Sources that take more than a second, the longest first.
_LONG = (
    *("vector_elementwise", "vector_cast", "host_tiling_definition", "vector_compare"),
    *("host_tiling_describe", "host_tiling_request", "job", "matrix"),
)
_CONFIGURING = ("program_clock",)  # sources that configure the standard library before they read its headers
_X86_64_V3_FEATURES = frozenset({"avx2", "f16c", "fma", "bmi2"})


@cache
def cpu_flags() -> tuple[str, ...]:
    """Return flags for the vector extensions of this host; results do not depend on them."""
    cpuinfo = Path("/proc/cpuinfo")
    if platform.machine() != "x86_64" or not cpuinfo.exists():
        return ()
    flags = next((line for line in cpuinfo.read_text().splitlines() if line.startswith("flags")), "")
    return ("-march=x86-64-v3",) if set(flags.split()) >= _X86_64_V3_FEATURES else ()


def own_flags() -> tuple[str, ...]:
    """Return the flags that the simulator's own programs are compiled with; other compilers know them too."""
    return (*_OPTIONS, *cpu_flags(), *INCLUDES)


def own_part(source: Path, target: Path, code_options: tuple[str, ...] = ()) -> Part:
    """Return one of the simulator's sources as what is compiled of it."""
    prefix = None if source.stem in _CONFIGURING else STANDARD_HEADERS
    return Part((*own_flags(), "-c"), source, target, prefix, code_options)


def own_parts(folder: Path, *directories: str, code_options: tuple[str, ...] = ()) -> list[Part]:
    """Return all sources of the simulator's ``directories``, to be compiled into ``folder``.

    Those that take longest come first.
    """
    sources = (source for name in directories for source in sorted((SOURCES / name).glob("*.cpp")))
    return longest_first(
        own_part(source, folder / f"{source.parent.name}-{source.stem}.o", code_options) for source in sources
    )


def longest_first(parts: Iterable[Part]) -> list[Part]:
    """Return parts in the order in which to compile them, so that all processors have work to the end."""
    return sorted(
        parts, key=lambda part: _LONG.index(part.source.stem) if part.source.stem in _LONG else len(_LONG)
    )
