"""The compiler of everything that the simulator builds: clang and lld of the ``ziglang`` wheel, and no other.

Both are called directly. Zig's own compiler driver is not used: it would build a whole C++ library and keep
a cache of its own, and it changes options. What a program needs beside its objects comes from the standard
library built here (``standard_library``) and from the C library that this Python process runs on.
"""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.wheel import COMPILER_PACKAGE, compiler_folder, compiler_program

_PACKAGES = (COMPILER_PACKAGE, "llvmlite")
_MACHINES = {"x86_64": "x86", "aarch64": "aarch64"}
# The oldest C library whose functions the headers declare; later ones have all of them.
_GLIBC_MINOR = 28
# libc++ is configured without what could let results depend on time or chance, or reach files and threads.
# Streams of files need its file system part; nothing else of that is built (``standard_library``).
_LIBRARY_CONFIGURATION = {
    "_LIBCPP_ABI_VERSION": "1",
    "_LIBCPP_ABI_NAMESPACE": "__1",
    "_LIBCPP_HAS_THREADS": "0",
    "_LIBCPP_HAS_MONOTONIC_CLOCK": "0",
    "_LIBCPP_HAS_TERMINAL": "0",
    "_LIBCPP_HAS_MUSL_LIBC": "0",
    "_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS": "0",
    "_LIBCPP_HAS_FILESYSTEM": "1",
    "_LIBCPP_HAS_RANDOM_DEVICE": "0",
    "_LIBCPP_HAS_LOCALIZATION": "1",
    "_LIBCPP_HAS_UNICODE": "0",
    "_LIBCPP_HAS_WIDE_CHARACTERS": "1",
    "_LIBCPP_HAS_TIME_ZONE_DATABASE": "0",
    "_LIBCPP_PSTL_BACKEND_SERIAL": "1",
    "_LIBCPP_HARDENING_MODE_DEFAULT": "_LIBCPP_HARDENING_MODE_NONE",
    "_LIBCPP_ASSERTION_SEMANTIC_DEFAULT": "_LIBCPP_ASSERTION_SEMANTIC_IGNORE",
}
_SYSTEM_LIBRARY = re.compile(
    r"(/\S*/(?:libc\.so\.6|ld-linux[^/\s]*\.so\.\d+|libc-2\.\d+\.so|ld-2\.\d+\.so))$"
)
# Parts of the C library that were libraries of their own before glibc 2.34, and the one for mathematics.
_BESIDE_LIBC = ("libm.so.6", "libdl.so.2")


@cache
def compiler_version() -> str:
    """Return names and versions of the packages that what is compiled depends on.

    Raises:
        InfrastructureError: one is not installed.
    """
    try:
        return ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    except PackageNotFoundError as error:
        raise InfrastructureError(
            f"the simulator needs the package {error.name}, which is not installed: "
            "install ascend-gym again, with its dependencies"
        ) from error


def target_machine() -> str:
    """Return the processor family of this host as compilers name it.

    Raises:
        InfrastructureError: programs cannot be built for it.
    """
    machine = platform.machine()
    if machine not in _MACHINES:
        raise InfrastructureError(f"the simulator runs on x86_64 and aarch64, not on {machine}")
    return machine


def clang(*options: str) -> list[str]:
    """Return a call of clang for this host, with its own headers and none of the system's."""
    return [compiler_program(), "clang", *host_options(), *options]


def host_options() -> list[str]:
    """Return the options that every call of clang for this host has."""
    return [f"--target={target_machine()}-linux-gnu", "-nostdinc", *header_options()]


def header_options() -> list[str]:
    """Return where the headers of the C++ and C libraries are, and how they are configured."""
    library = compiler_folder() / "lib"
    system = library / "libc" / "include"
    family = _MACHINES[target_machine()]
    folders = (
        library / "libcxx" / "include",
        library / "libcxxabi" / "include",
        library / "include",
        *(
            system / name
            for name in (f"{family}-linux-gnu", "generic-glibc", f"{family}-linux-any", "any-linux-any")
        ),
    )
    configuration = {**header_configuration(), "__GLIBC_MINOR__": str(_GLIBC_MINOR), "_GNU_SOURCE": "1"}
    includes = [part for folder in folders if folder.exists() for part in ("-isystem", str(folder))]
    return [*includes, *(f"-D{name}={value}" for name, value in configuration.items())]


def header_configuration(*, musl: bool = False) -> dict[str, str]:
    """Return the macros that libc++ is configured with, for headers of the GNU C library or of musl."""
    return {**_LIBRARY_CONFIGURATION, "_LIBCPP_HAS_MUSL_LIBC": str(int(musl))}


def lld(*options: str) -> list[str]:
    """Return a call of the linker."""
    return [compiler_program(), "ld.lld", *options]


def archiver(*options: str) -> list[str]:
    """Return a call of the program that puts objects into an archive."""
    return [compiler_program(), "ar", *options]


@cache
def system_libraries() -> tuple[str, ...]:
    """Return the files of the C library of this host that programs are linked with.

    Raises:
        InfrastructureError: this Python does not run on the GNU C library.
    """
    libc = _mapped("libc")
    beside = (libc.with_name(name) for name in _BESIDE_LIBC)
    return (str(libc), *(str(path) for path in beside if path.exists()))


@cache
def system_loader() -> str:
    """Return the program that loads others on this host.

    Raises:
        InfrastructureError: as for ``system_libraries``.
    """
    return str(_mapped("ld"))


def _mapped(name: str) -> Path:
    """Return the library of the system, of those in this process, whose file name starts with ``name``."""
    for row in Path("/proc/self/maps").read_text("utf-8", "replace").splitlines():
        found = _SYSTEM_LIBRARY.search(row)
        if found is not None and Path(found[1]).name.startswith(name):
            return Path(found[1])
    raise InfrastructureError(
        f"the simulator needs a Python that runs on the GNU C library: no {name} is loaded in this process"
    )


def call_tool(command: Sequence[str]) -> str:
    """Run a compiler or linker on the simulator's own sources and return what it printed.

    It gets no environment: none of the variables that compilers read changes what is built.

    Raises:
        InfrastructureError: the tool is missing or fails.
    """
    try:
        return subprocess.run(
            command, check=True, capture_output=True, encoding="utf-8", errors="replace", env={}
        ).stdout
    except OSError as error:
        raise InfrastructureError(
            f"the simulator needs {command[0]}, which could not be started: {error}; "
            "install ascend-gym again, with its dependencies"
        ) from error
    except subprocess.CalledProcessError as error:
        raise InfrastructureError(f"building the simulator failed:\n{error.stderr[-4000:]}") from error
