"""The compiler calls for programs with launches and a main function of their own (``.asc`` files).

They are compiled once for each kind of core that they use. What they read first, the headers of Ascend C and
of launches, is precompiled; macros of the command line are defined behind it, as those of kernels are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from npu_daemon.simulator.compiler import clang
from npu_daemon.simulator.kernel_ir.device_language import MARK
from npu_daemon.simulator.own_sources import HOST_INCLUDE, INCLUDE, INCLUDES
from npu_daemon.simulator.task_type import CoreKind

PROGRAM_HEADER = INCLUDE / "asim" / "asc" / "program.h"
"""What every program reads first."""

# Programs measure themselves with std::chrono::steady_clock, which src/asc/program_clock.cpp is.
_WITH_CLOCK = ("-U_LIBCPP_HAS_MONOTONIC_CLOCK", "-D_LIBCPP_HAS_MONOTONIC_CLOCK=1")
# Programs with kernels and a main function of their own: compiled like kernels (``kernel_ir.clang``), but
# they may throw, and call acl and the C library.
_OPTIONS = (
    *(
        "-std=c++17",
        "-O1",
        "-g1",
        "-gno-column-info",
        "-fPIC",
        "-w",
        "-ffp-contract=off",
        "-fno-finite-loops",
        "-fno-plt",
    ),
    *("-fno-builtin", "-fno-threadsafe-statics", *_WITH_CLOCK),
    *("-Wno-c++11-narrowing", "-Wno-missing-template-arg-list-after-template-kw"),
    *("-D__CCE_AICORE__=220", "-D__NPU_ARCH__=2201", HOST_INCLUDE),
)
_KIND_OPTIONS = {
    CoreKind.VECTOR: ("-D__DAV_C220_VEC__", "-D__DAV_VEC__"),
    CoreKind.CUBE: ("-D__DAV_C220_CUBE__", "-D__DAV_CUBE__"),
}


def program_options(kind: CoreKind, *, marked: bool = False) -> tuple[str, ...]:
    """Return what the precompiled header and the program that is compiled with it have in common.

    Args:
        kind: of the core that the program is compiled for.
        marked: whether kernels are marked, for ``find_offences``.
    """
    marks = (f'-DASIM_AICORE_SECTION="{MARK}"',) if marked else ()
    return (*_OPTIONS, *_KIND_OPTIONS[kind], *INCLUDES, *marks)


def program_bitcode_command(
    options: Sequence[str],
    header: Path,
    source: str,
    output: str,
    include_dirs: Sequence[Path],
    defines: Sequence[str],
    *,
    optimised: bool = True,
) -> list[str]:
    """Return the compiler call that makes bitcode of a program, for ``count_program`` or ``find_offences``.

    Args:
        options: ``program_options``.
        header: precompiled with them.
        source: file of the program.
        output: file to make.
        include_dirs: folders searched for headers behind those of the simulator.
        defines: macros, ``NAME`` or ``NAME=VALUE``.
        optimised: or as the front end has written it.
    """
    as_written = () if optimised else ("-Xclang", "-disable-llvm-passes", "-gcolumn-info")
    flags = [*options, "-include-pch", str(header), *_own_flags(include_dirs, defines), *as_written]
    return clang(*flags, "-c", "-emit-llvm", "-x", "c++", source, "-o", output)


def program_text_command(
    kind: CoreKind, source: str, output: str, include_dirs: Sequence[Path], defines: Sequence[str]
) -> list[str]:
    """Return the compiler call that writes a program as its conditionals and macros leave it.

    What kernels say about their cores (``__mix__(1, 2)``, ``KERNEL_TASK_TYPE``) stays as it is written.

    Args:
        kind: of the core that it is compiled for.
        source: file of the program.
        output: file to make.
        include_dirs: folders searched for headers behind those of the simulator.
        defines: macros, ``NAME`` or ``NAME=VALUE``.
    """
    flags = [*program_options(kind), "-include", str(PROGRAM_HEADER), *_own_flags(include_dirs, defines)]
    return clang(*flags, "-DASIM_KEEP_QUALIFIERS", "-E", "-x", "c++", source, "-o", output)


def program_object_command(bitcode: str, output: str) -> list[str]:
    """Return the compiler call that makes an object of a program's bitcode, which is not optimised again."""
    return clang(
        "-O1", "-fPIC", "-Xclang", "-disable-llvm-passes", "-w", "-c", "-x", "ir", bitcode, "-o", output
    )


def _own_flags(include_dirs: Sequence[Path], defines: Sequence[str]) -> list[str]:
    return [*(f"-D{define}" for define in defines), *(f"-I{folder}" for folder in include_dirs)]
