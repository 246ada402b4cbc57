"""The simulator's own programs, built with AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from npu_daemon.simulator import toolchain
from npu_daemon.simulator.object_store import call_tool

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
_SOURCES = Path(toolchain.__file__).parent / "src"


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
    store = toolchain.object_store(cache_dir)
    objects = []
    sources = sorted(source for part in parts for source in (_SOURCES / part).glob("*.cpp"))
    for source in (*sources, *(_SOURCES / name for name in shared)):
        target = folder / f"{source.parent.name}-{source.stem}.o"
        store.compile((*toolchain.own_flags(), *SANITIZER_FLAGS, "-c"), source, target)
        objects.append(str(target))
    call_tool(["g++", "-rdynamic", *SANITIZER_FLAGS, *objects, "-ldl", "-o", str(program)])
    return program
