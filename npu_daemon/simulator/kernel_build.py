"""Builds device kernels: unmodified sources, wrapped so that the run program can call their entry."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ascend_gym.core.cpp_text import code_only
from ascend_gym.core.digest import digest_of
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, MeasureProtocol, Phase, SourceFile, Sources
from ascend_gym.core.status import Status
from npu_daemon.sandbox import ResourceLimits, wall_limit_s
from npu_daemon.simulator.build_flags import refused_flags
from npu_daemon.simulator.host_build import header_folders
from npu_daemon.simulator.kernel_ir.compilation import KernelSource, build_library
from npu_daemon.simulator.kernel_ir.headers import READ_FIRST
from npu_daemon.simulator.kernel_template import (
    template_entry_points,
    template_parameters,
    undeclared,
    without_kernel,
)
from npu_daemon.simulator.task_type import CoreKind, core_kinds, kernel_task_types
from npu_daemon.simulator.toolchain import Toolchain

_ENTRY = re.compile(r"__global__\s+__aicore(?:__)?\s+void\s+(\w+)\s*\(")
# A launch from host code, which only the device compiler can read: NAME<<<...>>>(...);
_LAUNCH_BEGIN = re.compile(r"\b\w+\s*<<<")
_LAUNCH_REST = re.compile(r">>>\s*\(")
# The qualifier as the device's compiler spells it; not a lambda that captures a variable of that name.
_SPELT_OUT = re.compile(r"\[aicore\](?!\s*[({])")
# A static array in global memory, static volatile __gm__ TYPE NAME[COUNT]; constants are left alone.
_GM_ARRAY = re.compile(
    r"\b(const(?:expr)?[ \t]+(?:inline[ \t]+)?)?static[ \t]+((?:volatile[ \t]+)?)__gm__[ \t]+"
    r"((?:volatile[ \t]+)?\w+)[ \t]+(\w+)[ \t]*\[([^][\n]+)\]"
)
_INCLUDES_MATMUL = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"][^>"\n]*matmul', re.MULTILINE)
_VIRTUAL = re.compile(r"\bvirtual\b")
_WORD = re.compile(r"(?<![{\w])[A-Za-z_]\w*(?=[^\"\w])")
_ENTRY_POINTS = """\
extern "C" void asim_kernel_entry(uint8_t *const *arguments, uint32_t count) {
    asim::asim_launch(&{entry}, arguments, count);
}
extern "C" uint32_t asim_task_type(uint64_t key, uint32_t otherwise) {
    return asim::asim_noted_task_type(__start_asim_task_types, __stop_asim_task_types, key, otherwise);
}"""
_MOST_DEFINITIONS = 8  # of an entry, in branches of #if, that are looked at
_OURS = "asim_"
_RESERVED = (  # headers_read_first, asim/api/launch.h, asim/api/template_launch.h
    "ASIM_READ_FIRST asim_call_entry asim_all_keys asim_launch_template asim_template_task_type"
)
_MACRO = "-D"
_WRAPPER = "asim_wrapper.cpp"
_PRELUDE = "asim_prelude.h"
_OWN_PREFIX = "asim_"  # of all files that a build makes in the folder of the sources, but the libraries
_LIBRARIES = {CoreKind.VECTOR: "kernel.so", CoreKind.CUBE: "kernel_cube.so"}
_BUILD_MEMORY_BYTES = 3 * 2**30
_BUILD_FILE_BYTES = 256 * 2**20
_BUILD_FOLDER_BYTES = 512 * 2**20


@dataclass(frozen=True)
class Entry:
    """A kernel's entry.

    Attributes:
        name: of the function.
        types: of each of its template parameters whether it is a type; ``None`` if it is no template.
    """

    name: str
    types: tuple[bool, ...] | None = None


@dataclass(frozen=True)
class KernelVariant:
    """Which of the libraries that the sources of a kernel can become.

    Attributes:
        extra_flags: the candidate's own compiler flags.
        tiling_key: of the only instance to build of a kernel that is a template; ``None`` for all.
        marked: whether its blocks say that they are reached.
    """

    extra_flags: tuple[str, ...] = ()
    tiling_key: int | None = None
    marked: bool = False


def entry_of(sources: Sources, preferred: str) -> Entry | None:
    """Return the kernel entry of the main file: ``preferred`` if it exists, else the first, else ``None``."""
    text = sources.main_text
    names = _ENTRY.findall(text)
    if not names:
        return None
    name = preferred if preferred in names else str(names[0])
    if "template" not in text:
        return Entry(name)
    code = code_only(text)
    definitions = islice((found for found in _ENTRY.finditer(code) if found[1] == name), _MOST_DEFINITIONS)
    lists = (template_parameters(code, found.start()) for found in definitions)
    return Entry(name, next((types for types in lists if types is not None), None))


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
        SourceFile(
            path=file.path, text=_SPELT_OUT.sub("__aicore", with_gm_arrays(without_launches(file.text)))
        )
        for file in sources.files
    )
    return Sources(files=files, main=sources.main)


def wrapper_source(
    sources: Sources, entry: Entry, flags: Sequence[str] = (), tiling_key: int | None = None
) -> str:
    """Return a translation unit around the unmodified main file.

    Args:
        sources: of the kernel.
        entry: its entry.
        flags: the candidate's own compiler flags.
        tiling_key: of the only instance to build of a template; ``None`` for all.

    Macros of build flags are defined where those of the sources are, behind the simulator's headers. The
    entry is renamed while the file is read, because names such as ``exp`` or ``sqrt`` are C functions. What
    calls it is a macro of a name that neither sources nor flags can hold, since it is their digest: none of
    their macros and none of their functions gets in its way.
    """
    call = f"asim_call_{digest_of('sources and flags', sources, tuple(flags))[:32]}"
    points = _ENTRY_POINTS if entry.types is None else template_entry_points(entry.types, tiling_key)
    words = sorted(set(_WORD.findall(points)))
    body = points.replace("{entry}", f"asim_entry_{entry.name}").replace("\n", "\\\n")
    undefined = "".join(f"#undef {word}\n" for word in words if _OURS not in word)
    return (
        # No function of a kernel hides whose it is (kernel_ir/origins.py).
        "#undef _LIBCPP_NODEBUG\n#define _LIBCPP_NODEBUG\n#pragma GCC poison nodebug __nodebug__\n"
        f'#include "{_PRELUDE}"\n'
        '#include "asim/api/no_libm.h"\n'
        f"{_read_first(sources)}"
        f"#define {call} {body}\n"
        f"#pragma GCC poison {_RESERVED} {' '.join(word for word in words if _OURS in word)}\n"
        f"{''.join(_definition(flag) for flag in flags if flag.startswith(_MACRO))}"
        f"#define {entry.name} asim_entry_{entry.name}\n"
        f'#include "{sources.main}"\n'
        f"#undef {entry.name}\n"
        f"{undefined}{call}\n"
    )


def _definition(flag: str) -> str:
    """Return a flag of the form ``-DNAME`` or ``-DNAME=VALUE`` as the line that it stands for."""
    name, equals, value = flag.removeprefix(_MACRO).partition("=")
    return f"#define {name} {value if equals else 1}\n"


def _read_first(sources: Sources) -> str:
    """Return includes of the headers that take long to read: for kernels that include them."""
    wanted = any(_INCLUDES_MATMUL.search(file.text) for file in sources.files)
    return f'#include "{READ_FIRST}"\n' if wanted else ""


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
    variant: KernelVariant = KernelVariant(),
) -> Failure | None:
    """Compile kernel sources into one library for each kind of core they can run on.

    Args:
        sources: kernel files with paths relative to the operator folder.
        prelude: generated header with element types and tiling structures.
        preferred_entry: entry to take when the main file has several.
        work_dir: an existing folder of this build; gets sources and libraries (``library_name``).
        toolchain: programs and precompiled headers of this host.
        protocol: holds the time limit.
        variant: which of the libraries that the sources can become.
    """
    refused = refused_flags(variant.extra_flags)
    if refused is not None:
        return refused
    taken = next((file.path for file in sources.files if file.path.startswith(_OWN_PREFIX)), None)
    if taken is not None:
        return _build_error(
            f"{taken}: names that begin with {_OWN_PREFIX} are those of the build: choose another"
        )
    virtual = _virtual_word(sources)
    if virtual is not None:
        return Failure(Status.BUILD_ERROR, (virtual,))
    sources = _readable(sources)
    entry = entry_of(sources, preferred_entry)
    if entry is None:
        expected = "expected 'extern \"C\" __global__ __aicore__ void name(...)'"
        return _build_error(f"{sources.main} has no kernel entry: {expected}")
    lacking = undeclared(sources) if entry.types is not None else None
    if lacking is not None:
        return _build_error(lacking)
    wrapper = wrapper_source(sources, entry, variant.extra_flags, variant.tiling_key)
    _write_sources(sources, prelude, wrapper, work_dir)
    failed = _build_libraries(sources, work_dir, toolchain, protocol, variant)
    return without_kernel(failed) if failed is not None and entry.types is not None else failed


def _virtual_word(sources: Sources) -> Diagnostic | None:
    """Return where a kernel declares something virtual: optimisation may leave no trace of it."""
    for file in sources.files:
        found = _VIRTUAL.search(code_only(file.text)) if _VIRTUAL.search(file.text) else None
        if found is not None:
            message = "kernels have no virtual functions and no virtual inheritance: use templates"
            line = file.text.count("\n", 0, found.start()) + 1
            return Diagnostic(phase=Phase.BUILD_KERNEL, message=message, file=file.path, line=line)
    return None


def _build_libraries(
    sources: Sources, work_dir: Path, toolchain: Toolchain, protocol: MeasureProtocol, variant: KernelVariant
) -> Failure | None:
    """Compile what lies in ``work_dir`` for each kind of core, at the same time."""
    limits = _limits(protocol)
    flags = tuple(flag for flag in variant.extra_flags if not flag.startswith(_MACRO))
    source = KernelSource(work_dir, _WRAPPER, sources, header_folders(sources), flags, variant.marked)
    kinds = core_kinds(kernel_task_types(sources))
    with ThreadPoolExecutor(max_workers=len(kinds)) as pool:
        failures = pool.map(
            lambda kind: build_library(source, kind, library_name(kind), toolchain.kernel, limits), kinds
        )
        return next((failure for failure in failures if failure is not None), None)


def _limits(protocol: MeasureProtocol) -> ResourceLimits:
    """Return what compiling for one kind of core may use."""
    return ResourceLimits(
        wall_s=wall_limit_s(protocol.build_timeout_s),
        cpu_s=protocol.build_timeout_s,
        memory_bytes=_BUILD_MEMORY_BYTES,
        file_bytes=_BUILD_FILE_BYTES,
        folder_bytes=_BUILD_FOLDER_BYTES,
    )


def _write_sources(sources: Sources, prelude: str, wrapper: str, work_dir: Path) -> None:
    work_dir.mkdir(exist_ok=True)
    for file in sources.files:
        path = work_dir / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")
    (work_dir / _PRELUDE).write_text(prelude, encoding="utf-8")
    (work_dir / _WRAPPER).write_text(wrapper, encoding="utf-8")


def _build_error(message: str) -> Failure:
    return Failure.of(Status.BUILD_ERROR, Phase.BUILD_KERNEL, message)
