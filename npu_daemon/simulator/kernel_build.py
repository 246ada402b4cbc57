"""Builds device kernels: unmodified sources, wrapped so that the run program can call their entry."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, MeasureProtocol, Phase, Sources
from ascend_gym.core.status import Status
from npu_daemon.sandbox import Limits, run_limited
from npu_daemon.simulator.host_build import compiler_diagnostics, header_folders
from npu_daemon.simulator.source_guard import refused_flags, refused_source
from npu_daemon.simulator.toolchain import Toolchain

_ENTRY = re.compile(r"__global__\s+__aicore__\s+void\s+(\w+)\s*\(")
# A launch from host code, which only the device compiler can read.
_LAUNCH = re.compile(r"\b\w+\s*<<<[^;]*>>>\s*\([^;]*\)\s*;")
_WRAPPER = "asim_wrapper.cpp"
_PRELUDE = "asim_prelude.h"
_LIBRARY = "kernel.so"
_BUILD_MEMORY_BYTES = 3 * 2**30
_BUILD_FILE_BYTES = 256 * 2**20
# What compilers emit calls to by themselves, and what the loader provides for every library.
_COMPILER_SYMBOLS = frozenset(
    {
        "__stack_chk_fail",
        "abort",
        "__cxa_finalize",
        "__gmon_start__",
        "_ITM_deregisterTMCloneTable",
        "_ITM_registerTMCloneTable",
        "__cxa_pure_virtual",
        "_ZTVN10__cxxabiv117__class_type_infoE",
        "_ZTVN10__cxxabiv120__si_class_type_infoE",
        "_ZdlPvm",
    }
)
_SIMULATOR_SYMBOL = re.compile(r"^_ZNK?(4asim|7AscendC)")


def entry_name(sources: Sources, preferred: str) -> str | None:
    """Return the kernel entry of the main file: ``preferred`` if it exists, else the first, else ``None``."""
    names = _ENTRY.findall(sources.main_text)
    if not names:
        return None
    return preferred if preferred in names else str(names[0])


def without_launches(text: str) -> str:
    """Return kernel text without host-side launches (``kernel<<<...>>>(...);``), lines kept in place."""
    return _LAUNCH.sub(lambda launch: ";" + "\n" * launch.group().count("\n"), text)


def wrapper_source(sources: Sources, entry: str) -> str:
    """Return a translation unit around the unmodified main file.

    The entry is renamed while the file is read, because names such as ``exp`` or ``sqrt`` are C functions.
    """
    return (
        f'#include "{_PRELUDE}"\n'
        f"#define {entry} asim_entry_{entry}\n"
        f'#include "{sources.main}"\n'
        f"#undef {entry}\n"
        'extern "C" void asim_kernel_entry(uint8_t *const *arguments, uint32_t count) {\n'
        f"    asim::launch(&asim_entry_{entry}, arguments, count);\n"
        "}\n"
    )


def build_kernel(
    sources: Sources,
    prelude: str,
    preferred_entry: str,
    work_dir: Path,
    toolchain: Toolchain,
    protocol: MeasureProtocol,
    extra_flags: Sequence[str] = (),
) -> Path | Failure:
    """Compile kernel sources into a library and return its path.

    Args:
        sources: kernel files with paths relative to the operator folder.
        prelude: generated header with element types and tiling structures.
        preferred_entry: entry to take when the main file has several.
        work_dir: an existing folder of this build; sources and library are written into it.
        toolchain: programs and precompiled header of this host.
        protocol: holds the time limit.
        extra_flags: the candidate's own compiler flags.
    """
    refused = refused_source(sources, Phase.BUILD_KERNEL) or refused_flags(extra_flags)
    if refused is not None:
        return refused
    entry = entry_name(sources, preferred_entry)
    if entry is None:
        return _build_error(
            f"{sources.main} has no kernel entry: "
            "expected 'extern \"C\" __global__ __aicore__ void name(...)'"
        )
    for file in sources.files:
        path = work_dir / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(without_launches(file.text), encoding="utf-8")
    (work_dir / _PRELUDE).write_text(prelude, encoding="utf-8")
    (work_dir / _WRAPPER).write_text(wrapper_source(sources, entry), encoding="utf-8")
    include_dirs = [Path(folder) for folder in header_folders(sources)]
    limits = Limits(
        wall_s=protocol.build_timeout_s,
        cpu_s=protocol.build_timeout_s,
        memory_bytes=_BUILD_MEMORY_BYTES,
        file_bytes=_BUILD_FILE_BYTES,
    )
    command = toolchain.kernel_command(_WRAPPER, _LIBRARY, include_dirs, extra_flags)
    outcome = run_limited(command, cwd=work_dir, limits=limits)
    if outcome.timed_out:
        message = f"compiling the kernel took longer than {limits.wall_s:g} s; make it simpler"
        return Failure(
            Status.TIMEOUT, (Diagnostic(phase=Phase.BUILD_KERNEL, message=message),), outcome.seconds
        )
    if outcome.returncode != 0:
        found = compiler_diagnostics(outcome, sources, Phase.BUILD_KERNEL)
        return Failure(Status.BUILD_ERROR, tuple(found), outcome.seconds)
    library = work_dir / _LIBRARY
    return check_symbols(library, toolchain) or library


def check_symbols(library: Path, toolchain: Toolchain) -> Failure | None:
    """Return why the library may not be loaded: it calls something that is not the simulator's interface."""
    listing = subprocess.run(
        ["nm", "-D", "--undefined-only", "--format=just-symbols", str(library)],
        check=True,
        capture_output=True,
        text=True,
    )
    wanted = {symbol.partition("@")[0] for symbol in listing.stdout.split()}
    unknown = sorted(wanted - toolchain.interface_symbols - _COMPILER_SYMBOLS)
    if not unknown:
        return None
    shown = ", ".join(_demangled(unknown[:5]))
    if all(_SIMULATOR_SYMBOL.match(symbol) for symbol in unknown):
        return _build_error(f"the kernel uses what the simulator does not provide: {shown}")
    message = (
        f"the kernel calls {shown}, which is not part of Ascend C as the simulator knows it: "
        "no libc, threads or files"
    )
    return Failure(Status.GUARD_REJECTED, (Diagnostic(phase=Phase.GUARD, message=message),))


def _demangled(symbols: Sequence[str]) -> list[str]:
    answer = subprocess.run(["c++filt", *symbols], check=True, capture_output=True, text=True)
    return answer.stdout.splitlines()


def _build_error(message: str) -> Failure:
    return Failure(Status.BUILD_ERROR, (Diagnostic(phase=Phase.BUILD_KERNEL, message=message),))
