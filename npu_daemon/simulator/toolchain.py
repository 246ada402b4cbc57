"""The simulator's programs and precompiled headers, built once per host and cached by digest."""

from __future__ import annotations

import fcntl
import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ascend_gym.core.digest import digest_of, digest_of_tree
from ascend_gym.core.errors import InfrastructureError
from npu_daemon.simulator.host_side import prepare_host_toolchain

_SIMULATOR = Path(__file__).parent
_SOURCES = _SIMULATOR / "src"
_INCLUDES = (f"-I{_SIMULATOR / 'include'}", f"-I{_SIMULATOR / 'include' / 'kernel'}")
_RUN, _PRICE, _SYMBOLS, _COMPLETE, _KERNEL_HEADER = (
    "asim_run",
    "asim_price",
    "symbols",
    "complete",
    "asim_kernel.h",
)
_OWN_OPTIONS = ("-std=c++17", "-O2", "-fPIC", "-ffp-contract=off")
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
    "-D__DAV_C220_VEC__",
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
    def price_program(self) -> Path:
        """Prices traces (trusted)."""
        return self.folder / _PRICE

    @property
    def host_folder(self) -> Path:
        """What ``npu_daemon.simulator.host_side`` needs."""
        return self.folder / "host"

    @property
    def interface_symbols(self) -> frozenset[str]:
        """Symbols that a kernel library may take from the run program."""
        return _symbols(self.folder)

    def kernel_command(
        self, source: str, output: str, include_dirs: Sequence[Path], extra_flags: Sequence[str] = ()
    ) -> list[str]:
        """Return the compiler call that makes a kernel library of one wrapper source."""
        includes = [f"-I{folder}" for folder in include_dirs]
        header = ["-include", str(self.folder / _KERNEL_HEADER), "-Winvalid-pch"]
        return ["g++", *extra_flags, *kernel_flags(), *header, *includes, *_KERNEL_LINK, source, "-o", output]


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


def kernel_flags() -> tuple[str, ...]:
    """Return the flags that kernels and their precompiled header are compiled with."""
    return (*_KERNEL_OPTIONS, *_cpu_flags(), *_INCLUDES)


@cache
def _compiler_version() -> str:
    return _call(["g++", "--version"]).splitlines()[0]


def obtain_toolchain(cache_dir: Path, announce: Callable[[str], None]) -> Toolchain:
    """Return the toolchain for this host and these sources, building it if it is not cached.

    Args:
        cache_dir: where built toolchains are kept.
        announce: told, once, when a build starts.

    Raises:
        InfrastructureError: g++ is missing or the simulator does not compile.
    """
    sources = digest_of_tree(_SIMULATOR, ("**/*.py", "include/**/*", "src/**/*"))
    digest = digest_of("toolchain", _compiler_version(), _cpu_flags(), sources)
    folder = cache_dir / "toolchain" / digest[:32]
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _COMPLETE).exists():
            announce("building the simulator (once, about a minute)")
            _build(folder)
            (folder / _COMPLETE).touch()
    return Toolchain(folder, digest)


def _build(folder: Path) -> None:
    """Build everything into ``folder``; independent compilations run side by side."""
    run = _objects(folder, "run", "runtime")
    price = _objects(folder, "price")
    header = folder / _KERNEL_HEADER
    header.write_text('#include "kernel_operator.h"\n#include "asim/api/launch.h"\n', encoding="ascii")
    commands = [_compile_command(source, target) for source, target in (*run, *price)]
    commands.append(["g++", *kernel_flags(), "-x", "c++-header", str(header), "-o", f"{header}.gch"])
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        host = pool.submit(prepare_host_toolchain, folder / "host")
        list(pool.map(_call, commands))
        host.result()
    _call(["g++", "-rdynamic", *(str(target) for _, target in run), "-ldl", "-o", str(folder / _RUN)])
    _call(["g++", *(str(target) for _, target in price), "-o", str(folder / _PRICE)])
    exported = _call(["nm", "-D", "--defined-only", "--format=just-symbols", str(folder / _RUN)])
    (folder / _SYMBOLS).write_text(exported, encoding="ascii")


def _objects(folder: Path, *directories: str) -> list[tuple[Path, Path]]:
    """Return each source of ``directories`` with the object file it is compiled to."""
    sources = sorted(source for name in directories for source in (_SOURCES / name).glob("*.cpp"))
    return [(source, folder / f"{source.parent.name}-{source.stem}.o") for source in sources]


def _compile_command(source: Path, target: Path) -> list[str]:
    return ["g++", *_OWN_OPTIONS, *_cpu_flags(), *_INCLUDES, "-c", str(source), "-o", str(target)]


def _call(command: Sequence[str]) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except OSError as error:
        raise InfrastructureError(
            f"the simulator needs {command[0]}, which could not be started: {error}"
        ) from error
    except subprocess.CalledProcessError as error:
        raise InfrastructureError(f"building the simulator failed:\n{error.stderr[-4000:]}") from error
