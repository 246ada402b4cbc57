"""The simulator's programs and precompiled headers, built once per host and cached by digest."""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ascend_gym.core.digest import digest_of, digest_of_tree
from npu_daemon.simulator.host_build import host_link_flags, prepare_host_toolchain
from npu_daemon.simulator.object_store import ObjectStore, call_tool, compiler_version
from npu_daemon.simulator.task_type import CoreKind

_SIMULATOR = Path(__file__).parent
_SOURCES = _SIMULATOR / "src"
_INCLUDE = _SIMULATOR / "include"
_INCLUDES = (f"-I{_INCLUDE}", f"-I{_INCLUDE / 'kernel'}")
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
_HOST_INCLUDE = f"-I{_INCLUDE / 'host'}"
# What kernels may take from the run program: not its main function, nor where its data lie.
_INTERFACE = re.compile(r"\d(?:asim|AscendC)|^__(?:asan|sanitizer_cov|wrap)_")
# Loops are turned into vector code where that cannot change a result.
_OWN_OPTIONS = (
    "-std=c++17",
    "-O2",
    "-ftree-vectorize",
    "-fvect-cost-model=dynamic",
    "-fno-trapping-math",
    "-fPIC",
    "-ffp-contract=off",
    "-fvisibility=hidden",  # but for what kernels may call (ASIM_API)
    _HOST_INCLUDE,
)
# Pricing and the race check are each optimised as a whole: a fifth off the time of pricing, the same results.
# A linker without the compiler's plugin takes the ordinary code that lies beside.
_ANALYSIS_OPTIONS = ("-O3", "-flto", "-flto-partition=one", "-ffat-lto-objects")
_X86_64_V3_FEATURES = frozenset({"avx2", "f16c", "fma", "bmi2"})
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
    "--param=asan-instrumentation-with-call-threshold=0",
    "--param=asan-stack=0",
    "--param=asan-globals=0",
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
    "-fno-gnu-unique",  # the builds for both kinds of core are loaded side by side
    _HOST_INCLUDE,
    "-include",
    "kernel_operator.h",
    "-include",
    "asim/asc/launch.h",
)

# Memory functions go through the simulator too, which prices them as the loop of words that they are.
_WRAPPED = ("memcpy", "memmove", "memset", "memcmp")
_KERNEL_LINK = ("-fmax-errors=5", "-shared", "-static-libgcc", *(f"-Wl,--wrap={name}" for name in _WRAPPED))


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
        """Where the compiler finds the simulator's headers and libraries."""
        return (self.folder, _SIMULATOR / "include")

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
        header = ["-include", str(_kernel_header(self.folder, kind)), "-Winvalid-pch"]
        return [
            "g++",
            *extra_flags,
            *kernel_flags(kind),
            *header,
            *includes,
            *_KERNEL_LINK,
            source,
            "-o",
            output,
        ]

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
        header = ["-include", str(_INCLUDE / _KERNEL_HEADER)]
        return ["g++", *extra_flags, *kernel_flags(kind), *header, *includes, "-E", source, "-o", output]

    def program_command(
        self,
        kind: CoreKind,
        source: str,
        output: str,
        include_dirs: Sequence[Path],
        defines: Sequence[str] = (),
    ) -> list[str]:
        """Return the compiler call that makes a library of a program with launches and a main function."""
        link = [*_KERNEL_LINK, source, "-o", output, *host_link_flags(self.host_folder)]
        return ["g++", *_program_flags(kind, include_dirs, defines), *link]


def program_text_command(
    kind: CoreKind, source: str, output: str, include_dirs: Sequence[Path], defines: Sequence[str]
) -> list[str]:
    """Return the compiler call that writes a program as its conditionals and macros leave it.

    What kernels say about their cores (``__mix__(1, 2)``, ``KERNEL_TASK_TYPE``) stays as it is written.
    """
    flags = _program_flags(kind, include_dirs, defines)
    return ["g++", *flags, "-DASIM_KEEP_QUALIFIERS", "-E", "-x", "c++", source, "-o", output]


def _program_flags(kind: CoreKind, include_dirs: Sequence[Path], defines: Sequence[str]) -> list[str]:
    flags = [flag for flag in kernel_flags(kind) if flag not in _PROGRAM_OMITTED]
    includes = [f"-I{folder}" for folder in include_dirs]
    macros = [f"-D{define}" for define in defines]
    return [*flags, *macros, *includes, *_PROGRAM_OPTIONS]


def _kernel_header(folder: Path, kind: CoreKind) -> Path:
    """Return the header whose precompiled form lies beside it."""
    return folder / kind.value / _KERNEL_HEADER


@cache
def _symbols(folder: Path) -> frozenset[str]:
    return frozenset((folder / _SYMBOLS).read_text(encoding="ascii").split())


@cache
def _cpu_flags() -> tuple[str, ...]:
    """Return flags for the vector extensions of this host; results do not depend on them."""
    cpuinfo = Path("/proc/cpuinfo")
    if platform.machine() != "x86_64" or not cpuinfo.exists():
        return ()
    flags = next((line for line in cpuinfo.read_text().splitlines() if line.startswith("flags")), "")
    return ("-march=x86-64-v3",) if set(flags.split()) >= _X86_64_V3_FEATURES else ()


def own_flags() -> tuple[str, ...]:
    """Return the flags that the simulator's own programs are compiled with."""
    return (*_OWN_OPTIONS, *_cpu_flags(), *_INCLUDES)


def kernel_flags(kind: CoreKind = CoreKind.VECTOR) -> tuple[str, ...]:
    """Return the flags that kernels and their precompiled header are compiled with."""
    return (*_KERNEL_OPTIONS, *_KIND_OPTIONS[kind], *_cpu_flags(), *_INCLUDES)


def obtain_toolchain(cache_dir: Path, announce: Callable[[str], None]) -> Toolchain:
    """Return the toolchain for this host and these sources, building it if it is not cached.

    Args:
        cache_dir: where built toolchains are kept.
        announce: told, once, when a build starts.

    Raises:
        InfrastructureError: g++ is missing or the simulator does not compile.
    """
    sources = digest_of_tree(_SIMULATOR, ("**/*.py", "include/**/*", "src/**/*"))
    digest = digest_of("toolchain", compiler_version(), _cpu_flags(), sources)
    folder = cache_dir / "toolchain" / digest[:32]
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
    run = _objects(folder, "run", "runtime")
    launcher = _objects(folder, "asc")
    price = _objects(folder, "price")
    races = _objects(folder, "races")
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        host = pool.submit(prepare_host_toolchain, folder / "host", store)
        headers = [pool.submit(_precompile_header, folder, kind, store) for kind in CoreKind]
        compiled = [
            pool.submit(store.compile, (*own_flags(), *options, "-c"), source, target)
            for options, pairs in (((), (*run, *launcher)), (_ANALYSIS_OPTIONS, (*price, *races)))
            for source, target in pairs
        ]
        for part in (host, *headers, *compiled):
            part.result()
    call_tool(["g++", "-rdynamic", *(str(target) for _, target in run), "-ldl", "-o", str(folder / _RUN)])
    runtime = [target for source, target in run if source.name != "main.cpp"]
    objects = [*runtime, *(target for _, target in launcher)]
    link = [*host_link_flags(folder / "host"), "-ldl"]
    call_tool(["g++", "-rdynamic", *map(str, objects), *link, "-o", str(folder / _LAUNCHER)])
    analysis = ["g++", *_ANALYSIS_OPTIONS, *_static_link()]
    call_tool([*analysis, *(str(target) for _, target in price), "-o", str(folder / _PRICE)])
    objects = [*(target for _, target in races), folder / "price-trace_reader.o"]
    call_tool([*analysis, *map(str, objects), "-o", str(folder / _RACES)])
    exported = call_tool(["nm", "-D", "--defined-only", "--format=just-symbols", str(folder / _RUN)])
    interface = [name for name in exported.split() if _INTERFACE.search(name)]
    (folder / _SYMBOLS).write_text("\n".join(interface), encoding="ascii")


def _static_link() -> tuple[str, ...]:
    """Return flags for programs that start a millisecond faster, if the libraries for it are installed."""
    archives = [call_tool(["g++", f"-print-file-name={name}"]).strip() for name in ("libc.a", "libstdc++.a")]
    return ("-static",) if all(Path(archive).is_absolute() for archive in archives) else ()


def _objects(folder: Path, *directories: str) -> list[tuple[Path, Path]]:
    """Return each source of ``directories`` with the object file it is compiled to."""
    sources = sorted(source for name in directories for source in (_SOURCES / name).glob("*.cpp"))
    return [(source, folder / f"{source.parent.name}-{source.stem}.o") for source in sources]


def _precompile_header(folder: Path, kind: CoreKind, store: ObjectStore) -> None:
    """Put the header of a kind of core, and its precompiled form, into ``folder``."""
    header = _kernel_header(folder, kind)
    header.parent.mkdir()
    shutil.copyfile(_INCLUDE / _KERNEL_HEADER, header)
    options = (*kernel_flags(kind), "-x", "c++-header")
    store.compile(options, _INCLUDE / _KERNEL_HEADER, Path(f"{header}.gch"))
