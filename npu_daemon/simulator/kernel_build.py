"""Builds device kernels: unmodified sources, wrapped so that the run program can call their entry."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, MeasureProtocol, Phase, SourceFile, Sources
from ascend_gym.core.status import Status
from npu_daemon.sandbox import Limits, Reach, run_limited
from npu_daemon.simulator.host_build import compiler_diagnostics, expansion, header_folders
from npu_daemon.simulator.source_guard import (
    needs_expansion,
    refused_flags,
    refused_pasting,
    refused_source,
)
from npu_daemon.simulator.task_type import CoreKind, core_kinds, kernel_task_types
from npu_daemon.simulator.toolchain import Toolchain

_ENTRY = re.compile(r"__global__\s+__aicore__\s+void\s+(\w+)\s*\(")
# A launch from host code, which only the device compiler can read: NAME<<<...>>>(...);
_LAUNCH_BEGIN = re.compile(r"\b\w+\s*<<<")
_LAUNCH_REST = re.compile(r">>>\s*\(")
# A static array in global memory, static volatile __gm__ TYPE NAME[COUNT]; constants are left alone.
_GM_ARRAY = re.compile(
    r"\b(const(?:expr)?[ \t]+(?:inline[ \t]+)?)?static[ \t]+((?:volatile[ \t]+)?)__gm__[ \t]+"
    r"((?:volatile[ \t]+)?\w+)[ \t]+(\w+)[ \t]*\[([^\]\n]+)\]"
)
_WRAPPER = "asim_wrapper.cpp"
_PRELUDE = "asim_prelude.h"
_EXPANSION = "asim_expansion.ii"
_LIBRARIES = {CoreKind.VECTOR: "kernel.so", CoreKind.CUBE: "kernel_cube.so"}
_SYSV_COLUMNS = 7  # of nm: name, value, class, type, size, line, section
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
# Objects in the data sections of every library, once in each; sections that hold no variables: read-only once
# it is loaded (constants of templates lie there, whatever class nm gives them), or notes for the launch.
_LIBRARY_OBJECTS = frozenset(
    {"completed.0", "__dso_handle", "__TMC_END__", "_GLOBAL_OFFSET_TABLE_", "_DYNAMIC"}
)
_CONSTANT_SECTIONS = frozenset({".rodata", ".data.rel.ro", ".init_array", ".fini_array", "asim_task_types"})
_GM_ARRAYS = "asim_gm_static"  # loaded as global memory: accesses are counted and checked for races
_SIMULATOR_SYMBOL = re.compile(r"^_ZNK?(4asim|7AscendC)")


def entry_name(sources: Sources, preferred: str) -> str | None:
    """Return the kernel entry of the main file: ``preferred`` if it exists, else the first, else ``None``."""
    names = _ENTRY.findall(sources.main_text)
    if not names:
        return None
    return preferred if preferred in names else str(names[0])


def without_launches(text: str) -> str:
    """Return kernel text without host-side launches (``kernel<<<...>>>(...);``), lines kept in place."""
    kept, done = [], 0
    for begin in _LAUNCH_BEGIN.finditer(text):
        if begin.start() < done:  # a statement is looked at once, however often it says <<<
            continue
        end = text.find(";", begin.end())
        if end < 0:
            break
        statement = text[begin.end() : end]
        if _LAUNCH_REST.search(statement) and statement.rstrip().endswith(")"):
            kept += [text[done : begin.start()], ";", "\n" * text.count("\n", begin.start(), end)]
        else:
            kept.append(text[done : end + 1])
        done = end + 1
    return "".join([*kept, text[done:]])


def with_gm_arrays(text: str) -> str:
    """Return kernel text with static arrays in global memory declared as ``asim/api/gm_array.h`` has it."""

    def declared(found: re.Match[str]) -> str:
        return found[0] if found[1] else f"static __gm_array__({found[2]}{found[3]}, {found[4]}, {found[5]})"

    return _GM_ARRAY.sub(declared, text)


def _readable(sources: Sources) -> Sources:
    """Return sources as the host's compiler gets them; from here on nothing else is looked at."""
    files = tuple(
        SourceFile(path=file.path, text=with_gm_arrays(without_launches(file.text))) for file in sources.files
    )
    return Sources(files=files, main=sources.main)


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
        'extern "C" uint32_t asim_task_type(uint64_t key, uint32_t otherwise) {\n'
        "    return asim::noted_task_type(__start_asim_task_types, __stop_asim_task_types, key, otherwise);\n"
        "}\n"
        'extern "C" void asim_gm_arrays(uint8_t **begin, uint8_t **end) {\n'
        "    *begin = __start_asim_gm_static;\n"
        "    *end = __stop_asim_gm_static;\n"
        "}\n"
    )


def library_name(kind: CoreKind) -> str:
    """Return the file name of the library for a kind of core."""
    return _LIBRARIES[kind]


def build_kernel(
    sources: Sources,
    prelude: str,
    preferred_entry: str,
    work_dir: Path,
    toolchain: Toolchain,
    protocol: MeasureProtocol,
    extra_flags: Sequence[str] = (),
) -> Failure | None:
    """Compile kernel sources into one library for each kind of core they can run on.

    Args:
        sources: kernel files with paths relative to the operator folder.
        prelude: generated header with element types and tiling structures.
        preferred_entry: entry to take when the main file has several.
        work_dir: an existing folder of this build; gets sources and libraries (``library_name``).
        toolchain: programs and precompiled headers of this host.
        protocol: holds the time limit.
        extra_flags: the candidate's own compiler flags.
    """
    sources = _readable(sources)
    refused = refused_source(sources, Phase.BUILD_KERNEL) or refused_flags(extra_flags)
    if refused is not None:
        return refused
    entry = entry_name(sources, preferred_entry)
    if entry is None:
        return _build_error(
            f"{sources.main} has no kernel entry: "
            "expected 'extern \"C\" __global__ __aicore__ void name(...)'"
        )
    wrapper = wrapper_source(sources, entry)
    _write_sources(sources, prelude, wrapper, work_dir)
    kinds = core_kinds(kernel_task_types(sources))
    macros = f"{prelude}\n{wrapper}"
    for kind in kinds if needs_expansion(sources) else ():
        expanded = _expansion(sources, kind, toolchain, extra_flags, work_dir)
        refused = expanded if isinstance(expanded, Failure) else refused_pasting(expanded, macros)
        if refused is not None:
            return refused
    with ThreadPoolExecutor(max_workers=len(kinds)) as pool:
        failures = pool.map(
            lambda kind: _compile(sources, kind, work_dir, toolchain, protocol, extra_flags), kinds
        )
        return next((failure for failure in failures if failure is not None), None)


def _write_sources(sources: Sources, prelude: str, wrapper: str, work_dir: Path) -> None:
    work_dir.mkdir(exist_ok=True)
    for file in sources.files:
        path = work_dir / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")
    (work_dir / _PRELUDE).write_text(prelude, encoding="utf-8")
    (work_dir / _WRAPPER).write_text(wrapper, encoding="utf-8")


def _expansion(
    sources: Sources, kind: CoreKind, toolchain: Toolchain, extra_flags: Sequence[str], folder: Path
) -> str | Failure:
    include_dirs = [Path(each) for each in header_folders(sources)]
    command = toolchain.expansion_command(kind, _WRAPPER, _EXPANSION, include_dirs, extra_flags)
    reach = Reach(toolchain.compiler_reads, starts_programs=True, programs=toolchain.compiler_programs)
    return expansion(command, folder / _EXPANSION, reach, sources, Phase.BUILD_KERNEL)


def _compile(
    sources: Sources,
    kind: CoreKind,
    work_dir: Path,
    toolchain: Toolchain,
    protocol: MeasureProtocol,
    extra_flags: Sequence[str],
) -> Failure | None:
    limits = Limits(
        wall_s=protocol.build_timeout_s,
        cpu_s=protocol.build_timeout_s,
        memory_bytes=_BUILD_MEMORY_BYTES,
        file_bytes=_BUILD_FILE_BYTES,
        folder_bytes=2 * _BUILD_FILE_BYTES,
    )
    include_dirs = [Path(folder) for folder in header_folders(sources)]
    command = toolchain.kernel_command(kind, _WRAPPER, library_name(kind), include_dirs, extra_flags)
    reach = Reach(toolchain.compiler_reads, starts_programs=True, programs=toolchain.compiler_programs)
    outcome = run_limited(command, cwd=work_dir, limits=limits, reach=reach)
    if outcome.timed_out:
        message = f"compiling the kernel took longer than {limits.wall_s:g} s; make it simpler"
        return Failure(
            Status.TIMEOUT, (Diagnostic(phase=Phase.BUILD_KERNEL, message=message),), outcome.seconds
        )
    if outcome.returncode != 0:
        found = compiler_diagnostics(outcome, sources, Phase.BUILD_KERNEL)
        return Failure(Status.BUILD_ERROR, tuple(found), outcome.seconds)
    library = work_dir / library_name(kind)
    return check_symbols(library, toolchain) or check_variables(library)


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


def check_variables(library: Path) -> Failure | None:
    """Return why the library may not be loaded: it has variables that outlive a function and can be written.

    All blocks would share them at no cost and without any order; a core of the device has no such memory.
    """
    listing = subprocess.run(
        ["nm", "--defined-only", "--format=sysv", str(library)], check=True, capture_output=True, text=True
    )
    rows = [[field.strip() for field in row.split("|")] for row in listing.stdout.splitlines()]
    writable = [
        row[0]
        for row in rows
        if len(row) == _SYSV_COLUMNS
        and row[3] in {"OBJECT", "TLS"}
        and row[2] not in {"r", "R"}
        and row[6] not in {*_CONSTANT_SECTIONS, _GM_ARRAYS}
    ]
    names = Counter(writable)
    variables = sorted(name for name in names if name not in _LIBRARY_OBJECTS or names[name] > 1)
    if not variables:
        return None
    message = (
        f"the kernel keeps data in static or global variables: {', '.join(_demangled(variables[:5]))}. "
        "Expected only constants there (constexpr or const with constant values): "
        "keep what changes in the kernel's class, in UB or in the workspace, "
        "or share it in global memory (static __gm__ T name[count])"
    )
    return Failure(Status.GUARD_REJECTED, (Diagnostic(phase=Phase.GUARD, message=message),))


def _demangled(symbols: Sequence[str]) -> list[str]:
    answer = subprocess.run(["c++filt", *symbols], check=True, capture_output=True, text=True)
    return answer.stdout.splitlines()


def _build_error(message: str) -> Failure:
    return Failure(Status.BUILD_ERROR, (Diagnostic(phase=Phase.BUILD_KERNEL, message=message),))
