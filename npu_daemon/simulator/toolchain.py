"""The simulator's programs and precompiled headers, built once per host and cached by digest."""

from __future__ import annotations

import fcntl
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.digest import digest_of, digest_of_tree
from ascend_gym.core.wheel import compiler_folder
from npu_daemon.simulator.compiler import clang, compiler_version, lld
from npu_daemon.simulator.elf_symbols import dynamic_symbols
from npu_daemon.simulator.host_toolchain import host_library, host_parts, link_host
from npu_daemon.simulator.kernel_ir.interface import constant_functions, interface_texts, modules_of
from npu_daemon.simulator.kernel_ir.toolchain import KernelToolchain, prepare_kernel_toolchain
from npu_daemon.simulator.object_store import ObjectStore, Part
from npu_daemon.simulator.own_sources import HOST_INCLUDE, INCLUDE, INCLUDES, cpu_flags, own_parts
from npu_daemon.simulator.standard_library import StandardLibrary
from npu_daemon.simulator.task_type import CoreKind

_SIMULATOR = Path(__file__).parent
_RUN, _LAUNCHER, _PRICE, _RACES, _HOST, _KERNEL, _COMPLETE, _LOCK = (
    "asim_run",
    "asim_launcher",
    "asim_price",
    "asim_races",
    "host",
    "kernel",
    "complete",
    "lock",
)
# What kernels may take from the run program: not its main function, nor where its data lie.
_INTERFACE = re.compile(r"^_ZN4asim")
# Pricing and the race check are each optimised as a whole.
_ANALYSIS_OPTIONS = ("-O3", "-flto")
_ANALYSIS_LINK = ("--lto-O3",)
# The types of what kernels may call are read from the LLVM IR of the runtime.
_KEEPING_IR = ("-Xclang", "-fembed-bitcode=all")
_HIDDEN = ("-fvisibility=hidden",)  # but for what kernels may call (ASIM_API)
_EXPORTING = ("--export-dynamic", "--exclude-libs=ALL")
# Programs measure themselves with std::chrono::steady_clock, which src/asc/program_clock.cpp is.
_WITH_CLOCK = ("-U_LIBCPP_HAS_MONOTONIC_CLOCK", "-D_LIBCPP_HAS_MONOTONIC_CLOCK=1")
# Programs with kernels and a main function of their own: compiled like kernels (``kernel_ir.clang``), but
# they may throw, and call acl and the C library.
_PROGRAM_OPTIONS = (
    *(
        "-std=c++17",
        "-O1",
        "-g1",
        "-gno-column-info",
        "-fPIC",
        "-w",
        "-ffp-contract=off",
        "-fno-finite-loops",
    ),
    *("-fno-builtin", "-fno-threadsafe-statics", *_WITH_CLOCK),
    *("-Wno-c++11-narrowing", "-Wno-missing-template-arg-list-after-template-kw"),
    *("-D__CCE_AICORE__=220", "-D__NPU_ARCH__=2201", HOST_INCLUDE),
    *("-include", "kernel_operator.h", "-include", "asim/asc/launch.h"),
)
_KIND_OPTIONS = {
    CoreKind.VECTOR: ("-D__DAV_C220_VEC__", "-D__DAV_VEC__"),
    CoreKind.CUBE: ("-D__DAV_C220_CUBE__", "-D__DAV_CUBE__"),
}
_PROGRAM_LINK = ("-shared", "--eh-frame-hdr")


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
        return self.folder / _HOST

    @property
    def compiler_reads(self) -> tuple[Path, ...]:
        """Where the compiler finds the simulator's headers and libraries, and its own."""
        return (self.folder, INCLUDE, *self.compiler_programs)

    @property
    def compiler_programs(self) -> tuple[Path, ...]:
        """Where the compiler itself is."""
        return (compiler_folder(),)

    @property
    def kernel(self) -> KernelToolchain:
        """What building kernels needs."""
        return KernelToolchain(self.folder / _KERNEL)

    def program_link_command(self, object_file: str, output: str) -> list[str]:
        """Return the linker call that makes a library of a program with launches and a main function."""
        return lld(*_PROGRAM_LINK, object_file, *host_library(self.host_folder), "-o", output)


def program_bitcode_command(
    kind: CoreKind, source: str, output: str, include_dirs: Sequence[Path], defines: Sequence[str]
) -> list[str]:
    """Return the compiler call that makes bitcode of a program, for ``count_program``.

    Args:
        kind: of the core that it is compiled for.
        source: file of the program.
        output: file to make.
        include_dirs: folders searched for headers before those of the simulator.
        defines: macros, ``NAME`` or ``NAME=VALUE``.
    """
    flags = _program_flags(kind, include_dirs, defines)
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
        include_dirs: folders searched for headers before those of the simulator.
        defines: macros, ``NAME`` or ``NAME=VALUE``.
    """
    flags = _program_flags(kind, include_dirs, defines)
    return clang(*flags, "-DASIM_KEEP_QUALIFIERS", "-E", "-x", "c++", source, "-o", output)


def program_object_command(bitcode: str, output: str) -> list[str]:
    """Return the compiler call that makes an object of a program's bitcode, which is not optimised again."""
    return clang(
        "-O1", "-fPIC", "-Xclang", "-disable-llvm-passes", "-w", "-c", "-x", "ir", bitcode, "-o", output
    )


def _program_flags(kind: CoreKind, include_dirs: Sequence[Path], defines: Sequence[str]) -> list[str]:
    includes = [f"-I{folder}" for folder in include_dirs]
    macros = [f"-D{define}" for define in defines]
    return [*_PROGRAM_OPTIONS, *_KIND_OPTIONS[kind], *INCLUDES, *macros, *includes]


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
    folder = (cache_dir / "toolchain").resolve() / place[:32]  # programs remember where their library is
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


@dataclass(frozen=True)
class _Programs:
    """What is compiled of the simulator's own sources, by the program that it is for."""

    price: list[Part]
    races: list[Part]
    run: list[Part]
    launcher: list[Part]

    @classmethod
    def in_folder(cls, folder: Path) -> _Programs:
        """Return the parts with their targets in ``folder``."""
        return cls(
            price=own_parts(folder, "price", options=_ANALYSIS_OPTIONS),
            races=own_parts(folder, "races", options=_ANALYSIS_OPTIONS),
            run=own_parts(folder, "run", "runtime", options=(*_HIDDEN, *_KEEPING_IR)),
            launcher=own_parts(folder, "asc", options=_WITH_CLOCK),
        )

    @property
    def parts(self) -> list[Part]:
        """All of them, those that take longest first."""
        return [*self.price, *self.races, *self.run, *self.launcher]


def simulator_parts(folder: Path) -> list[Part]:
    """Return everything that is compiled of the simulator's own sources, with targets in ``folder``."""
    return [*host_parts(folder / _HOST), *_Programs.in_folder(folder).parts]


def _build(folder: Path, store: ObjectStore) -> None:
    """Build everything into ``folder``; independent compilations run side by side."""
    standard, host = StandardLibrary(folder / "standard"), folder / _HOST
    for part in (standard.folder, host):
        part.mkdir()
    programs = _Programs.in_folder(folder)
    store.compile_all([*standard.parts(), *host_parts(host), *programs.parts])
    standard.archive()
    link_host(host, standard, store)
    _link_programs(folder, standard, programs.run, programs.launcher)
    standard.link_program(folder / _PRICE, _targets(programs.price), _ANALYSIS_LINK)
    reader = str(folder / "price-trace_reader.o")
    standard.link_program(folder / _RACES, [*_targets(programs.races), reader], _ANALYSIS_LINK)


def _link_programs(
    folder: Path, standard: StandardLibrary, run: Sequence[Part], launcher: Sequence[Part]
) -> None:
    """Make what kernels are loaded by; they take the simulator's functions from it, none of a library."""
    standard.link_program(folder / _RUN, _targets(run), _EXPORTING)
    runtime = [part for part in run if part.source.name != "main.cpp"]
    objects = _targets([*runtime, *launcher])
    standard.link_program(folder / _LAUNCHER, [*objects, *host_library(folder / "host")], _EXPORTING)
    exported = {name for name in dynamic_symbols(folder / _RUN).defined if _INTERFACE.search(name)}
    modules = list(modules_of(part.target for part in run))
    interface, constants = interface_texts(modules, exported), constant_functions(modules, exported)
    prepare_kernel_toolchain(KernelToolchain(folder / _KERNEL), interface, constants)


def _targets(parts: Sequence[Part]) -> list[str]:
    return [str(part.target) for part in parts]
