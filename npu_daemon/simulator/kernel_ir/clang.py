"""How kernels become bitcode: clang of the wheel, without its driver, in a file system of its own.

What it can open is listed in an overlay, so that no include leads anywhere else, and paths are the same
on every host: ``/kernel`` is the candidate's folder, ``/asim`` the simulator's headers, ``/c++``,
``/clang`` and ``/libc`` those of the wheel, and ``/built`` the precompiled headers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ascend_gym.core.wheel import compiler_folder, compiler_program
from npu_daemon.simulator.compiler import call_tool, header_configuration
from npu_daemon.simulator.task_type import CoreKind

OVERLAY = "asim_overlay.json"
_INCLUDE = Path(__file__).parent.parent / "include"
_HEADER = "asim_kernel.h"
_LIBRARY = "lib"
_HEADER_FOLDERS = {
    "/c++": "libcxx/include",
    "/c++abi": "libcxxabi/include",
    "/clang": "include",
    "/libc/machine": "libc/include/x86_64-linux-musl",
    "/libc/generic": "libc/include/generic-musl",
}
# Instructions are counted on what this makes: one processor and one set of passes for all hosts. Compiled
# so that an endless loop stays one, that library functions are calls like others, and a null pointer is an
# address like others. The model of relocation is not that of the library: it keeps tables of pointers as
# they are.
_TARGET = ("-triple", "x86_64-unknown-linux-musl", "-target-cpu", "x86-64-v3")
_LANGUAGE = (
    *("-std=c++17", "-O1", "-ffp-contract=off", "-fno-finite-loops", "-fno-builtin", "-fno-rtti"),
    *("-mllvm", "-force-vector-width=1", "-mllvm", "-force-vector-interleave=1"),  # whatever pragmas ask for
    *("-fno-threadsafe-statics", "-fno-use-cxa-atexit", "-fdeprecated-macro", "-fgnuc-version=4.2.1"),
    *("-mrelocation-model", "static", "-fno-delete-null-pointer-checks", "-funwind-tables=0"),
    *("-nostdsysteminc", "-nobuiltininc", "-disable-free", "-disable-llvm-verifier", "-discard-value-names"),
    # From version 5 on, places tell by a digest which file they are in, whatever #line says.
    *("-debug-info-kind=line-tables-only", "-dwarf-version=5", "-gno-call-site-info"),
    *("-fdebug-compilation-dir=/kernel", "-working-directory", "/kernel"),
    *("-source-date-epoch", "0"),  # what __DATE__ and __TIME__ say; clang's driver alone asks the environment
)
_DIAGNOSTICS = (
    *("-w", "-ferror-limit", "5", "-fno-caret-diagnostics", "-ftemplate-backtrace-limit=20"),
    *("-Wno-c++11-narrowing", "-Wno-missing-template-arg-list-after-template-kw"),
)
_KIND_MACROS = {
    CoreKind.VECTOR: ("-D__DAV_C220_VEC__", "-D__DAV_VEC__"),
    CoreKind.CUBE: ("-D__DAV_C220_CUBE__", "-D__DAV_CUBE__"),
}
_MACROS = ("-DASCENDC_CPU_DEBUG", "-D__CCE_AICORE__=220", "-D__NPU_ARCH__=2201")


# Without times: an installation that is made again has the same headers with others. What the headers need of
# templates is made once here, and not in each compilation again.
_PRECOMPILING = ("-fno-pch-timestamp", "-fpch-instantiate-templates")


def overlay(work_dir: Path, built: Path) -> str:
    """Return the description of the file system that clang sees.

    Args:
        work_dir: the candidate's folder.
        built: folder of the precompiled headers.
    """
    library = compiler_folder() / _LIBRARY
    folders = {
        "/kernel": work_dir,
        "/asim": _INCLUDE,
        "/built": built,
        **{name: library / path for name, path in _HEADER_FOLDERS.items()},
    }
    roots = [
        {"type": "directory-remap", "name": name, "external-contents": str(path)}
        for name, path in folders.items()
    ]
    settings = {"version": 0, "case-sensitive": True, "redirecting-with": "redirect-only", "roots": roots}
    return json.dumps({**settings, "use-external-names": False})


def bitcode_command(
    kind: CoreKind,
    source: str,
    output: Path,
    overlay_file: Path,
    include_dirs: Sequence[str],
    extra_flags: Sequence[str],
    *,
    optimised: bool = True,
) -> list[str]:
    """Return the call that compiles a source of the candidate's folder to bitcode.

    Args:
        kind: the kind of core it runs on.
        source: relative to the candidate's folder.
        output: file to write.
        overlay_file: holds ``overlay``.
        include_dirs: of the candidate, relative to its folder.
        extra_flags: the candidate's own, but for macros.
        optimised: or as the front end has written it.
    """
    folders = [f"-I/kernel/{folder}" for folder in include_dirs]
    header = ["-include-pch", f"/built/{_header_name(kind)}"]
    return [
        *_call(kind, overlay_file, folders, extra_flags),
        *header,
        *(("-gno-column-info",) if optimised else ("-disable-llvm-passes",)),
        *("-x", "c++", source, "-emit-llvm-bc", "-o", str(output)),
    ]


def syntax_command(kind: CoreKind, source: str, overlay_file: Path) -> list[str]:
    """Return the call that only tells what is wrong with a source.

    Args:
        kind: the kind of core it runs on.
        source: as the overlay shows it.
        overlay_file: holds ``overlay``.
    """
    return [*_call(kind, overlay_file, (), ()), "-x", "c++", source, "-fsyntax-only"]


def precompile(folder: Path) -> None:
    """Put the precompiled header of each kind of core into ``folder``.

    Raises:
        InfrastructureError: the compiler is missing or refuses the simulator's headers.
    """
    overlay_file = folder / OVERLAY
    overlay_file.write_text(overlay(folder, folder), encoding="utf-8")
    for kind in CoreKind:
        output = folder / _header_name(kind)
        command = [*_call(kind, overlay_file, (), ()), "-x", "c++-header", f"/asim/{_HEADER}"]
        call_tool([*command, "-emit-pch", *_PRECOMPILING, "-o", str(output)])


def _call(
    kind: CoreKind, overlay_file: Path, include_options: Sequence[str], extra_flags: Sequence[str]
) -> list[str]:
    headers = [part for name in _HEADER_FOLDERS for part in ("-internal-isystem", name)]
    return [
        *(compiler_program(), "clang", "-cc1", "-ivfsoverlay", str(overlay_file)),
        *(*extra_flags, *_TARGET, *_LANGUAGE, *_DIAGNOSTICS, *_MACROS, *_KIND_MACROS[kind]),
        *(f"-D{name}={value}" for name, value in header_configuration(musl=True).items()),
        *(*include_options, "-I/asim", "-I/asim/kernel", *headers),
    ]


def _header_name(kind: CoreKind) -> str:
    return f"{kind.value}.pch"
