"""The simulator's own programs, built with AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from npu_daemon.simulator.compiler import call_tool
from npu_daemon.simulator.object_store import ObjectStore, Part
from npu_daemon.simulator.own_sources import SOURCES, own_flags

SANITIZER_FLAGS = (
    "-O1",
    "-g1",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)
# Options of test machines (vector_machine.py) on top of the usual ones; set by --sanitize.
machine_flags: tuple[str, ...] = ()
FOUND_EXIT = 99
# The programs install their own signal handlers, and never free what lasts as long as they do.
ENVIRONMENT = {
    "ASAN_OPTIONS": f"exitcode={FOUND_EXIT}:detect_leaks=0:handle_segv=0:use_sigaltstack=0",
    "UBSAN_OPTIONS": f"exitcode={FOUND_EXIT}:print_stacktrace=1",
}


def gxx() -> str:
    """Return the path of g++, which finds its parts beside itself."""
    return shutil.which("g++") or "g++"


def gxx_linker() -> list[str]:
    """Return a call of g++ for linking; without an environment it has to be told where the linker is."""
    return [gxx(), f"-B{Path(gxx()).parent}"]


def sanitizing_store(cache_dir: Path) -> ObjectStore:
    """Return the store of a cache that compiles with g++, which brings the libraries of the sanitizers."""
    return ObjectStore(cache_dir / "sanitized", (gxx(),), call_tool([gxx(), "--version"]))


def sanitized_program(
    cache_dir: Path, folder: Path, parts: Sequence[str], shared: Sequence[str] = ()
) -> Path:
    """Return a program of all sources in folders ``parts`` of the simulator.

    Args:
        cache_dir: cache of the simulator; compiled parts are kept there.
        folder: an existing folder for the program.
        parts: names of source folders, the one with the main function first.
        shared: single sources of other folders, such as ``price/trace_reader.cpp``.
    """
    program = folder / f"sanitized-{parts[0]}"
    sources = sorted(source for part in parts for source in (SOURCES / part).glob("*.cpp"))
    flags = (*own_flags(), *SANITIZER_FLAGS, "-c")
    compiled = [
        Part(flags, source, folder / f"{source.parent.name}-{source.stem}.o")
        for source in (*sources, *(SOURCES / name for name in shared))
    ]
    sanitizing_store(cache_dir).compile_all(compiled)
    objects = [str(part.target) for part in compiled]
    call_tool([*gxx_linker(), "-rdynamic", *SANITIZER_FLAGS, *objects, "-ldl", "-o", str(program)])
    return program
