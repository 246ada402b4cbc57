"""The simulator's programs and precompiled headers, built once per host and cached by digest."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ascend_gym.core.digest import digest_of, digest_of_tree
from npu_daemon.simulator.compiler import clang, compiler_folder, compiler_version, lld
from npu_daemon.simulator.elf_symbols import dynamic_symbols
from npu_daemon.simulator.host_toolchain import host_library, host_parts, link_host
from npu_daemon.simulator.object_store import ObjectStore, Part
from npu_daemon.simulator.own_sources import HOST_INCLUDE, INCLUDE, INCLUDES, cpu_flags, own_parts
from npu_daemon.simulator.standard_library import StandardLibrary
from npu_daemon.simulator.task_type import CoreKind

_SIMULATOR = Path(__file__).parent
_RUN, _LAUNCHER, _PRICE, _RACES, _SYMBOLS, _COMPLETE, _LOCK, _KERNEL_HEADER = (
    "asim_run",
    "asim_launcher",
    "asim_price",
    "asim_races",
    "symbols",
    "complete",
    "lock",
    "asim_kernel.h",
)
# What kernels may take from the run program: not its main function, nor where its data lie.
_INTERFACE = re.compile(r"\d(?:asim|AscendC)|^__(?:asan|sanitizer_cov|wrap)_")
# Pricing and the race check are each optimised as a whole.
_ANALYSIS_OPTIONS = ("-O3", "-flto")
_ANALYSIS_LINK = ("--lto-O3",)
_EXPORTING = ("--export-dynamic", "--exclude-libs=ALL")
# Kernels: instrumented to count the basic blocks they execute and every load and store they make themselves
# (calls only: no sanitizer run-time library), and compiled so that an endless loop stays one.
_KERNEL_OPTIONS = (
    "-std=c++17",
    "-O1",
    "-g1",
    "-fPIC",
    "-w",
    "-ffp-contract=off",
    "-fno-finite-loops",
    "-fno-math-errno",
    "-fno-exceptions",
    "-fno-threadsafe-statics",
    "-fsanitize-coverage=trace-pc",
    "-fsanitize=kernel-address",
    *("-mllvm", "-asan-instrumentation-with-call-threshold=0"),
    *("-mllvm", "-asan-stack=0"),
    *("-mllvm", "-asan-globals=0"),
    "-Wno-c++11-narrowing",
    "-Wno-missing-template-arg-list-after-template-kw",
    "-DASCENDC_CPU_DEBUG",
    "-D__CCE_AICORE__=220",
)
_KIND_OPTIONS = {
    CoreKind.VECTOR: ("-D__DAV_C220_VEC__", "-D__DAV_VEC__"),
    CoreKind.CUBE: ("-D__DAV_C220_CUBE__", "-D__DAV_CUBE__"),
}


# Programs with a main function of their own are compiled as kernels are, but they may throw and call acl.
_PROGRAM_OMITTED = ("-fno-exceptions", "-DASCENDC_CPU_DEBUG")
_PROGRAM_OPTIONS = (
    "-D__NPU_ARCH__=2201",
    HOST_INCLUDE,
    "-include",
    "kernel_operator.h",
    "-include",
    "asim/asc/launch.h",
)

# Memory functions go through the simulator too, which prices them as the loop of words that they are.
_WRAPPED = ("memcpy", "memmove", "memset", "memcmp")
_KERNEL_LINK = ("-shared", "--eh-frame-hdr", *(f"--wrap={name}" for name in _WRAPPED))
_KERNEL_OBJECT = "asim_kernel.o"


@dataclass(frozen=True)
class Toolchain:
    """Where the built parts are.

    Attributes:
        folder: holds everything below.
        digest: identity of compiler, flags and simulator sources.
    """

    folder: Path
    digest: str

    @property
    def run_program(self) -> Path:
        """Executes kernels (untrusted)."""
        return self.folder / _RUN

    @property
    def launcher_program(self) -> Path:
        """Runs programs that launch kernels themselves (untrusted)."""
        return self.folder / _LAUNCHER

    @property
    def price_program(self) -> Path:
        """Prices traces (trusted)."""
        return self.folder / _PRICE

    @property
    def races_program(self) -> Path:
        """Looks for races in traces (trusted)."""
        return self.folder / _RACES

    @property
    def host_folder(self) -> Path:
        """What ``npu_daemon.simulator.host_side`` needs."""
        return self.folder / "host"

    @property
    def compiler_reads(self) -> tuple[Path, ...]:
        """Where the compiler finds the simulator's headers and libraries, and its own."""
        return (self.folder, INCLUDE, *self.compiler_programs)

    @property
    def compiler_programs(self) -> tuple[Path, ...]:
        """Where the compiler itself is."""
        return (compiler_folder(),)

    @property
    def interface_symbols(self) -> frozenset[str]:
        """Symbols that a kernel library may take from the run program."""
        return _symbols(self.folder)

    def kernel_command(
        self,
        kind: CoreKind,
        source: str,
        output: str,
        include_dirs: Sequence[Path],
        extra_flags: Sequence[str] = (),
    ) -> list[str]:
        """Return the compiler call that makes a library of one wrapper source for one kind of core."""
        includes = [f"-I{folder}" for folder in include_dirs]
        header = ["-include-pch", str(_kernel_header(self.folder, kind))]
        options = [*extra_flags, *kernel_flags(kind), *header, *includes, "-ferror-limit=5", "-c"]
        return _compile_and_link(clang(*options, source), output)

    def expansion_command(
        self,
        kind: CoreKind,
        source: str,
        output: str,
        include_dirs: Sequence[Path],
        extra_flags: Sequence[str] = (),
    ) -> list[str]:
        """Return the preprocessor call that writes what the compiler reads of a kernel."""
        includes = [f"-I{folder}" for folder in include_dirs]
        header = ["-include", str(INCLUDE / _KERNEL_HEADER)]
        return clang(*extra_flags, *kernel_flags(kind), *header, *includes, "-E", source, "-o", output)

    def program_command(
        self,
        kind: CoreKind,
        source: str,
        output: str,
        include_dirs: Sequence[Path],
        defines: Sequence[str] = (),
    ) -> list[str]:
        """Return the compiler call that makes a library of a program with launches and a main function."""
        compiler = clang(*_program_flags(kind, include_dirs, defines), "-c", "-x", "c++", source)
        return _compile_and_link(compiler, output, *host_library(self.host_folder))


def program_text_command(
    kind: CoreKind, source: str, output: str, include_dirs: Sequence[Path], defines: Sequence[str]
) -> list[str]:
    """Return the compiler call that writes a program as its conditionals and macros leave it.

    What kernels say about their cores (``__mix__(1, 2)``, ``KERNEL_TASK_TYPE``) stays as it is written.
    """
    flags = _program_flags(kind, include_dirs, defines)
    return clang(*flags, "-DASIM_KEEP_QUALIFIERS", "-E", "-x", "c++", source, "-o", output)


def _compile_and_link(compiler: Sequence[str], output: str, *libraries: str) -> list[str]:
    """Return one call that makes a library by a compiler call without an output, and the linker."""
    link = lld(*_KERNEL_LINK, _KERNEL_OBJECT, *libraries, "-o", output)
    return ["/bin/sh", "-c", f"{shlex.join([*compiler, '-o', _KERNEL_OBJECT])} && {shlex.join(link)}"]


def _program_flags(kind: CoreKind, include_dirs: Sequence[Path], defines: Sequence[str]) -> list[str]:
    flags = [flag for flag in kernel_flags(kind) if flag not in _PROGRAM_OMITTED]
    includes = [f"-I{folder}" for folder in include_dirs]
    macros = [f"-D{define}" for define in defines]
    return [*flags, *macros, *includes, *_PROGRAM_OPTIONS]


def _kernel_header(folder: Path, kind: CoreKind) -> Path:
    """Return the precompiled header for kernels on a kind of core."""
    return folder / f"{kind.value}-{_KERNEL_HEADER}.pch"


@cache
def _symbols(folder: Path) -> frozenset[str]:
    return frozenset((folder / _SYMBOLS).read_text(encoding="ascii").split())


def kernel_flags(kind: CoreKind = CoreKind.VECTOR) -> tuple[str, ...]:
    """Return the flags that kernels and their precompiled header are compiled with."""
    return (*_KERNEL_OPTIONS, *_KIND_OPTIONS[kind], *cpu_flags(), *INCLUDES)


def obtain_toolchain(cache_dir: Path, announce: Callable[[str], None]) -> Toolchain:
    """Return the toolchain for this host and these sources, building it if it is not cached.

    Args:
        cache_dir: where built toolchains are kept.
        announce: told, once, when a build starts.

    Raises:
        InfrastructureError: the compiler is missing or the simulator does not compile.
    """
    sources = digest_of_tree(_SIMULATOR, ("**/*.py", "include/**/*", "src/**/*"))
    digest = digest_of("toolchain", compiler_version(), cpu_flags(), sources)
    # Precompiled headers name the headers in them by their paths.
    place = digest_of("place", digest, str(_SIMULATOR), str(compiler_folder()))
    folder = cache_dir / "toolchain" / place[:32]
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / _LOCK, "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _COMPLETE).exists():
            announce("building the simulator (once, about a minute)")
            _remove_unfinished(folder)
            _build(folder, object_store(cache_dir))
            (folder / _COMPLETE).touch()
    return Toolchain(folder, digest)


def object_store(cache_dir: Path) -> ObjectStore:
    """Return the store of everything compiled for the toolchains below ``cache_dir``."""
    return ObjectStore(cache_dir / "toolchain" / "objects")


def _remove_unfinished(folder: Path) -> None:
    """Remove what a build left behind that was killed."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != _LOCK:
            path.unlink()


def _build(folder: Path, store: ObjectStore) -> None:
    """Build everything into ``folder``; independent compilations run side by side."""
    standard, host = StandardLibrary(folder / "standard"), folder / "host"
    for part in (standard.folder, host):
        part.mkdir()
    run = own_parts(folder, "run", "runtime")
    launcher = own_parts(folder, "asc")
    price = own_parts(folder, "price", options=_ANALYSIS_OPTIONS)
    races = own_parts(folder, "races", options=_ANALYSIS_OPTIONS)
    own = [*price, *races, *run, *launcher]
    with ThreadPoolExecutor(max_workers=2) as pool:
        headers = [pool.submit(_precompile_kernel_header, folder, kind, store) for kind in CoreKind]
        store.compile_all([*standard.parts(), *host_parts(host), *own])
        for header in headers:
            header.result()
    standard.archive()
    link_host(host, standard, store)
    _link_programs(folder, standard, run, launcher)
    standard.link_program(folder / _PRICE, _targets(price), _ANALYSIS_LINK)
    reader = str(folder / "price-trace_reader.o")
    standard.link_program(folder / _RACES, [*_targets(races), reader], _ANALYSIS_LINK)


def _link_programs(
    folder: Path, standard: StandardLibrary, run: Sequence[Part], launcher: Sequence[Part]
) -> None:
    """Make what kernels are loaded by; they take the simulator's functions from it, none of a library."""
    standard.link_program(folder / _RUN, _targets(run), _EXPORTING)
    runtime = [part for part in run if part.source.name != "main.cpp"]
    objects = _targets([*runtime, *launcher])
    standard.link_program(folder / _LAUNCHER, [*objects, *host_library(folder / "host")], _EXPORTING)
    interface = [name for name in dynamic_symbols(folder / _RUN).defined if _INTERFACE.search(name)]
    (folder / _SYMBOLS).write_text("\n".join(sorted(interface)), encoding="ascii")


def _targets(parts: Sequence[Part]) -> list[str]:
    return [str(part.target) for part in parts]


def _precompile_kernel_header(folder: Path, kind: CoreKind, store: ObjectStore) -> None:
    """Put the precompiled header of a kind of core into ``folder``."""
    made = store.precompile(kernel_flags(kind), INCLUDE / _KERNEL_HEADER)
    os.link(made, _kernel_header(folder, kind))
