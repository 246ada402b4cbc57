"""How the simulator's own sources are compiled."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

from npu_daemon.simulator.object_store import Part

SOURCES = Path(__file__).parent / "src"
INCLUDE = Path(__file__).parent / "include"
INCLUDES = (f"-I{INCLUDE}", f"-I{INCLUDE / 'kernel'}")
HOST_INCLUDE = f"-I{INCLUDE / 'host'}"
STANDARD_HEADERS = SOURCES / "support" / "standard.h"
_OPTIONS = ("-std=c++17", "-O2", "-fPIC", "-ffp-contract=off", HOST_INCLUDE)
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


def own_part(source: Path, target: Path, options: tuple[str, ...] = ()) -> Part:
    """Return one of the simulator's sources as what is compiled of it."""
    return Part((*own_flags(), *options, "-c"), source, target, STANDARD_HEADERS)


def own_parts(folder: Path, *directories: str, options: tuple[str, ...] = ()) -> list[Part]:
    """Return all sources of the simulator's ``directories``, to be compiled into ``folder``."""
    sources = sorted(source for name in directories for source in (SOURCES / name).glob("*.cpp"))
    return [own_part(source, folder / f"{source.parent.name}-{source.stem}.o", options) for source in sources]
