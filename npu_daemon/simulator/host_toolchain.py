"""The host side of the toolchain: what tiling programs are compiled with, linked with and run by.

It is a folder with a precompiled header, the library that tiling programs are linked with, and the
``host_tiling`` program that loads a built one and answers questions about it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from npu_daemon.simulator.compiler import clang, lld, system_libraries, system_loader
from npu_daemon.simulator.compiler_errors import MAX_ERRORS
from npu_daemon.simulator.elf_symbols import dynamic_symbols
from npu_daemon.simulator.object_store import ObjectStore, Part
from npu_daemon.simulator.own_sources import INCLUDE, SOURCES, own_part
from npu_daemon.simulator.standard_library import StandardLibrary

HOST_HEADERS = INCLUDE / "host"
# The two macros are what the build of cann-ops passes to its logging headers.
_FLAGS = (
    "-std=c++17",
    "-O1",
    "-g1",
    "-fPIC",
    "-w",
    "-ffp-contract=off",
    "-Wno-c++11-narrowing",
    "-fno-caret-diagnostics",
    "-fno-color-diagnostics",
    '-DOPS_UTILS_LOG_SUB_MOD_NAME="OP_TILING"',
    '-DOPS_UTILS_LOG_PACKAGE_TYPE="[Custom]"',
    f"-I{HOST_HEADERS}",
)
_PREFIX_HEADER, _PRECOMPILED = "asim_host.h", "asim_host.h.pch"
_LIBRARY, _RUNNER, _START, _SYMBOLS = "libasim_host.so", "host_tiling", "library.o", "symbols"
_LIBRARY_SOURCES = (
    "host_tiling_types.cpp",
    "host_tiling_platform.cpp",
    "host_tiling_library.cpp",
    "host_tiling_definition.cpp",
    "host_tiling_matmul.cpp",
    "host_tiling_matmul_l1.cpp",
    "host_tiling_matmul_api.cpp",
)
_RUNNER_SOURCES = ("host_tiling.cpp", "host_tiling_request.cpp", "host_tiling_describe.cpp")


def host_parts(dest: Path) -> list[Part]:
    """Return what has to be compiled into the folder ``dest`` for the host side."""
    return [
        own_part(SOURCES / name, dest / f"{Path(name).stem}.o")
        for name in (*_LIBRARY_SOURCES, *_RUNNER_SOURCES)
    ]


def precompile_host_header(dest: Path, store: ObjectStore) -> None:
    """Put the precompiled header of tiling programs into the folder ``dest``."""
    os.link(store.precompile(_FLAGS, HOST_HEADERS / _PREFIX_HEADER), dest / _PRECOMPILED)


def link_host(dest: Path, standard: StandardLibrary) -> None:
    """Make host library and program in the folder ``dest`` of compiled parts.

    The library holds all of the standard library, for itself, the program and each tiling program.
    """
    library = [f"{dest / Path(name).stem}.o" for name in _LIBRARY_SOURCES]
    whole = ["--whole-archive", standard.archive_file(), "--no-whole-archive"]
    standard.link_library(dest / _LIBRARY, [*library, *whole], ["-soname", _LIBRARY])
    runner = [f"{dest / Path(name).stem}.o" for name in _RUNNER_SOURCES]
    standard.link_program(dest / _RUNNER, [*runner, *host_library(dest, ".")])
    shutil.copyfile(standard.library_start(), dest / _START)
    offered = dynamic_symbols(dest / _LIBRARY).defined
    (dest / _SYMBOLS).write_text("\n".join(sorted(offered)), encoding="ascii")


def host_library(toolchain: Path, *runpath: str) -> list[str]:
    """Return what links a program or a library with the host library of a toolchain.

    Args:
        toolchain: folder of the host side in a toolchain.
        runpath: where a program looks for it, relative to its own folder: a cache may be moved. Libraries
            say nothing: the programs that load them have loaded it before.
    """
    return [str(toolchain / _LIBRARY), *(part for each in runpath for part in ("-rpath", f"$ORIGIN/{each}"))]


def runner_of(toolchain: Path) -> Path:
    """Return the ``host_tiling`` program of a toolchain."""
    return toolchain / _RUNNER


def host_compile_command(
    toolchain: Path,
    source: str,
    output: str,
    include_dirs: Sequence[Path | str] = (),
    *,
    optimised: bool = True,
) -> list[str]:
    """Return the compiler call that makes LLVM IR of one host source.

    Args:
        toolchain: folder of the host side in a toolchain (``Toolchain.host_folder``).
        source: relative to the working directory of the call.
        output: file name of the IR, as text.
        include_dirs: folders searched for headers before those of the simulator.
        optimised: whether the IR is that of the optimiser, which builds are made of, or has the blocks of the
            source.
    """
    passes = [] if optimised else ["-Xclang", "-disable-llvm-passes"]
    includes = [f"-I{folder}" for folder in include_dirs]
    prefix = ["-include-pch", str(toolchain / _PRECOMPILED)]
    return [
        *clang(*includes, *_FLAGS, *passes, *prefix, f"-ferror-limit={MAX_ERRORS}"),
        "-S",
        "-emit-llvm",
        source,
        "-o",
        output,
    ]


def host_assemble_command(module: str, output: str) -> list[str]:
    """Return the compiler call that makes an object of LLVM IR that was made by ``host_compile_command``.

    The IR is optimised already; a tiling program runs for less time than more would take.
    """
    return clang(
        "-O0", "-fPIC", "-w", "-Xclang", "-disable-llvm-passes", "-x", "ir", "-c", module, "-o", output
    )


def host_link_command(toolchain: Path, objects: Sequence[str], output: str) -> list[str]:
    """Return the linker call that makes a shared library of host objects.

    Args:
        toolchain: folder of the host side in a toolchain (``Toolchain.host_folder``).
        objects: relative to the working directory of the call.
        output: file name of the library.
    """
    # definition and tiling are two libraries in the real build, so the same function may be in both
    options = ["-shared", "--eh-frame-hdr", "-z", "defs", "-z", "muldefs", "-z", "now", "--error-limit=5"]
    # thread-local variables are found by the loader
    libraries = [*host_library(toolchain), *system_libraries(), "--as-needed", system_loader()]
    return lld(*options, str(toolchain / _START), *objects, *libraries, "-o", output)


def host_symbols(toolchain: Path) -> frozenset[str]:
    """Return the names that the host library offers to tiling programs."""
    listing = toolchain / _SYMBOLS
    return _symbols(listing, listing.stat().st_mtime_ns)


@cache
def _symbols(listing: Path, changed_ns: int) -> frozenset[str]:
    return frozenset(listing.read_text(encoding="ascii").split())
