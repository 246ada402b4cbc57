"""Building the host side: the toolchain once, and the host code of candidates.

The toolchain is a directory with a precompiled header, the library that host code links against, and the
``host_tiling`` program that loads a built candidate and answers questions about it.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase, SourceFile, Sources
from ascend_gym.core.status import Status
from npu_daemon.sandbox import Limits, ProcessOutcome, Reach, run_limited
from npu_daemon.simulator.object_store import ObjectStore, call_tool
from npu_daemon.simulator.source_guard import (
    needs_expansion,
    refused_library,
    refused_pasting,
    refused_source,
)

BUILD_LIMITS = Limits(
    wall_s=60.0, cpu_s=60.0, memory_bytes=4 << 30, file_bytes=256 << 20, folder_bytes=512 << 20
)
MAX_ERRORS = 5
_EXPANSION = "asim_expansion.ii"
_EXPANSION_LIMITS = Limits(
    wall_s=20.0, cpu_s=20.0, memory_bytes=2 << 30, file_bytes=128 << 20, folder_bytes=512 << 20
)

_SIMULATOR = Path(__file__).parent
_HEADERS = _SIMULATOR / "include" / "host"
# The two macros are what the build of cann-ops passes to its logging headers.
_FLAGS = (
    "-std=c++17",
    "-O1",
    "-fPIC",
    "-w",
    "-fno-diagnostics-show-caret",
    "-fdiagnostics-color=never",
    '-DOPS_UTILS_LOG_SUB_MOD_NAME="OP_TILING"',
    '-DOPS_UTILS_LOG_PACKAGE_TYPE="[Custom]"',
)
_PREFIX_HEADER = "asim_host.h"
_LIBRARY = "libasim_host.so"
_BUILT = "host.so"
_RUNNER = "host_tiling"
_LIBRARY_SOURCES = (
    "host_tiling_types.cpp",
    "host_tiling_platform.cpp",
    "host_tiling_library.cpp",
    "host_tiling_definition.cpp",
    "host_tiling_matmul.cpp",
    "host_tiling_matmul_l1.cpp",
    "host_tiling_matmul_api.cpp",
)
_RUNNER_SOURCES = ("host_tiling.cpp", "host_tiling_request.cpp", "host_tiling_describe.cpp")
_SOURCE_SUFFIXES = (".cpp", ".cc")
_ACLNN_INCLUDE = re.compile(r'^[^\S\n]*#[^\S\n]*include[^\S\n]*[<"](?:opdev/|aclnn)', re.MULTILINE)
_LOCATED = re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)?\s*(?P<text>.*)$")
_ERROR = re.compile(r"^(?:fatal )?error: (?P<message>.*)$")
_LINK_ERROR = re.compile(r"undefined reference to .*|multiple definition of .*")


def prepare_host_toolchain(dest: Path, store: ObjectStore) -> None:
    """Build precompiled header, host library and ``host_tiling`` program into the folder ``dest``.

    Args:
        dest: made by this call.
        store: keeps the compiled parts between toolchains.

    Raises:
        InfrastructureError: g++ is missing or cannot compile the simulator's own sources.
    """
    dest.mkdir(parents=True)
    shutil.copyfile(_HEADERS / _PREFIX_HEADER, dest / _PREFIX_HEADER)
    options = (*_FLAGS, f"-I{_HEADERS}")
    store.compile((*options, "-x", "c++-header"), _HEADERS / _PREFIX_HEADER, dest / f"{_PREFIX_HEADER}.gch")
    objects = {name: dest / f"{Path(name).stem}.o" for name in (*_LIBRARY_SOURCES, *_RUNNER_SOURCES)}
    for name, target in objects.items():
        store.compile((*options, "-c"), _SIMULATOR / "src" / name, target)
    library = [str(objects[name]) for name in _LIBRARY_SOURCES]
    runner = [str(objects[name]) for name in _RUNNER_SOURCES]
    call_tool(["g++", "-shared", *library, "-o", str(dest / _LIBRARY)])
    call_tool(["g++", *runner, "-o", str(dest / _RUNNER), *host_link_flags(dest), "-ldl"])


def runner_of(toolchain: Path) -> Path:
    """Return the ``host_tiling`` program of a toolchain."""
    return toolchain / _RUNNER


def host_build_command(
    toolchain: Path, sources: Sequence[str], output: str, include_dirs: Sequence[Path | str] = ()
) -> list[str]:
    """Return the compiler call that makes one shared library of host sources.

    Args:
        toolchain: folder made by ``prepare_host_toolchain``.
        sources: source or object files, relative to the working directory of the call.
        output: file name of the library.
        include_dirs: folders searched for headers before those of the simulator.
    """
    # definition and tiling are two libraries in the real build, so the same function may be in both
    link = ["-shared", "-Wl,--no-undefined", "-Wl,-z,muldefs", "-o", output, *host_link_flags(toolchain)]
    return [*_compiler_call(toolchain, include_dirs), *sources, *link]


def _compiler_call(toolchain: Path, include_dirs: Sequence[Path | str]) -> list[str]:
    includes = [f"-I{folder}" for folder in include_dirs]
    prefix = ["-include", str(toolchain / _PREFIX_HEADER)]
    return ["g++", *_FLAGS, f"-fmax-errors={MAX_ERRORS}", *prefix, *includes, f"-I{_HEADERS}"]


def build_host(
    sources: Sources,
    work_dir: Path,
    toolchain: Path,
    *,
    include_dirs: Sequence[Path] = (),
    limits: Limits = BUILD_LIMITS,
) -> Path | Failure:
    """Compile the host sources of a candidate and return the shared library.

    Args:
        sources: host files with paths relative to the operator folder. Files of the aclnn layer are not
            compiled: a kernel launch does not need them.
        work_dir: an existing folder of this build; sources and library are written into it.
        toolchain: folder made by ``prepare_host_toolchain``.
        include_dirs: further header folders, for operators that share headers outside their folder.
        limits: what the compiler may use.
    """
    compiled = [file.path for file in sources.files if _is_compiled(file)]
    if not compiled:
        message = f"expected a .cpp file with the tiling function, got {[f.path for f in sources.files]}"
        return _failure(Status.BUILD_ERROR, [Diagnostic(phase=Phase.BUILD_TILING, message=message)], 0.0)
    refused = refused_source(sources, Phase.BUILD_TILING)
    if refused is not None:
        return refused
    folder = work_dir / "operator"
    _write(sources.files, folder)
    library = work_dir / _BUILT
    started_s = time.perf_counter()
    folders: list[Path | str] = [*header_folders(sources), *include_dirs]
    if needs_expansion(sources):
        refused = _refused_expansion(sources, compiled, toolchain, folders, folder)
        if refused is not None:
            return refused
    outcome = _compile(compiled, folder, toolchain, folders, limits)
    seconds = time.perf_counter() - started_s
    if outcome.returncode == 0:
        (folder / library.name).rename(library)
        return refused_library(library, seconds) or library
    if outcome.timed_out:
        message = f"compiling the host code took longer than {limits.wall_s:g} s; make it simpler"
        diagnostic = Diagnostic(phase=Phase.BUILD_TILING, message=message)
        return _failure(Status.TIMEOUT, [diagnostic], seconds)
    return _failure(Status.BUILD_ERROR, compiler_diagnostics(outcome, sources, Phase.BUILD_TILING), seconds)


def _refused_expansion(
    sources: Sources,
    compiled: Sequence[str],
    toolchain: Path,
    include_dirs: Sequence[Path | str],
    folder: Path,
) -> Failure | None:
    reach = _compiler_reach(toolchain, include_dirs)
    for source in compiled:
        written = folder / _EXPANSION
        command = [*_compiler_call(toolchain, include_dirs), "-E", source, "-o", written.name]
        expanded = expansion(command, written, reach, sources, Phase.BUILD_TILING)
        refused = expanded if isinstance(expanded, Failure) else refused_pasting(expanded)
        if refused is not None:
            return refused
    return None


def expansion(
    command: Sequence[str], written: Path, reach: Reach, sources: Sources, phase: Phase
) -> str | Failure:
    """Return what the preprocessor makes of sources, and remove it again.

    What it cannot read is not compiled either: another time the compiler might find it readable.

    Args:
        command: the preprocessor's call, in the folder of ``written``.
        written: the file that it makes.
        reach: what it may read.
        sources: for diagnostics.
        phase: of diagnostics.
    """
    outcome = run_limited(command, cwd=written.parent, limits=_EXPANSION_LIMITS, reach=reach)
    if outcome.exceeded is not None:
        limits = f"{_EXPANSION_LIMITS.wall_s:g} s and {_EXPANSION_LIMITS.file_bytes >> 20} MiB"
        message = f"what macros and includes make of the sources takes more than {limits}; make them simpler"
        status = Status.TIMEOUT if outcome.timed_out else Status.RESOURCE_LIMIT
        return _failure(status, [Diagnostic(phase=phase, message=message)], outcome.seconds)
    if outcome.returncode != 0:
        return _failure(Status.BUILD_ERROR, compiler_diagnostics(outcome, sources, phase), outcome.seconds)
    text = written.read_text("utf-8", "replace")
    written.unlink()
    return text


def _compiler_reach(toolchain: Path, include_dirs: Sequence[Path | str]) -> Reach:
    elsewhere = [path for path in map(Path, include_dirs) if path.is_absolute()]
    return Reach((toolchain, _HEADERS, *elsewhere), starts_programs=True)


def _compile(
    compiled: Sequence[str],
    folder: Path,
    toolchain: Path,
    include_dirs: Sequence[Path | str],
    limits: Limits,
) -> ProcessOutcome:
    """Make the library in ``folder``, sources side by side; return the first failure or the last end."""
    reach = _compiler_reach(toolchain, include_dirs)
    if len(compiled) == 1:
        command = host_build_command(toolchain, compiled, _BUILT, include_dirs)
        return run_limited(command, cwd=folder, limits=limits, reach=reach)

    def compile_one(source: str, target: str) -> ProcessOutcome:
        command = [*_compiler_call(toolchain, include_dirs), "-c", source, "-o", target]
        return run_limited(command, cwd=folder, limits=limits, reach=reach)

    objects = [f"{number}.o" for number in range(len(compiled))]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        outcomes = list(pool.map(compile_one, compiled, objects))
    failed = next((outcome for outcome in outcomes if outcome.returncode != 0), None)
    if failed is not None:
        return failed
    link = host_build_command(toolchain, objects, _BUILT)
    return run_limited(link, cwd=folder, limits=limits, reach=reach)


def header_folders(sources: Sources) -> list[str]:
    """Return every folder of the sources, for includes that name a header by any part of its path.

    The folders of the main file come first, then those of the operator, then those of shared sources.
    """
    files = sorted(sources.files, key=lambda file: (file.path != sources.main, file.path))
    folders = (str(parent) for file in files for parent in PurePosixPath(file.path).parents)
    return list(dict.fromkeys(folders))


def parse_compiler_errors(text: str, sources: Sources, phase: Phase) -> list[Diagnostic]:
    """Return the first errors of a compiler output, located in the files of ``sources``.

    An error inside a header of the simulator is reported where the operator's code led to it.
    """
    lines = {file.path: file.text.splitlines() for file in sources.files}
    diagnostics: list[Diagnostic] = []
    latest: tuple[str, int] | None = None
    for row in text.splitlines():
        located = _LOCATED.match(row)
        if located is None:
            link_error = _LINK_ERROR.search(row)
            if link_error is not None:
                diagnostics.append(Diagnostic(phase=phase, message=link_error.group()))
            continue
        path, line = PurePosixPath(located["file"]).as_posix(), int(located["line"])
        error = _ERROR.match(located["text"])
        if path in lines:
            latest = (path, line)
        if error is not None:
            place = (path, line) if path in lines else latest
            diagnostics.append(_compiler_diagnostic(phase, error["message"], place, lines))
            latest = None
    return diagnostics[:MAX_ERRORS]


def _compiler_diagnostic(
    phase: Phase, message: str, place: tuple[str, int] | None, lines: dict[str, list[str]]
) -> Diagnostic:
    if place is None:
        return Diagnostic(phase=phase, message=message)
    path, line = place
    shown = lines[path][line - 1].strip() if 0 < line <= len(lines[path]) else ""
    text = f"{message}\n    {shown}" if shown else message
    return Diagnostic(phase=phase, message=text, file=path, line=line)


def compiler_diagnostics(outcome: ProcessOutcome, sources: Sources, phase: Phase) -> list[Diagnostic]:
    """Return what a failed compiler call said about ``sources``; at least one diagnostic."""
    if outcome.exceeded is not None:
        message = f"the compiler exceeded its {outcome.exceeded} limit on these sources; make them simpler"
        return [Diagnostic(phase=phase, message=message)]
    text = outcome.stderr.decode("utf-8", "replace")
    found = parse_compiler_errors(text, sources, phase)
    if found:
        return found
    ending = " ".join(text.split()[-60:]) or f"the compiler ended with signal {outcome.signal}"
    return [Diagnostic(phase=phase, message=f"the compiler failed: {ending}")]


def _is_compiled(file: SourceFile) -> bool:
    return file.path.endswith(_SOURCE_SUFFIXES) and _ACLNN_INCLUDE.search(file.text) is None


def _write(files: Sequence[SourceFile], folder: Path) -> None:
    for file in files:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(file.text, encoding="utf-8")


def host_link_flags(toolchain: Path) -> list[str]:
    """Return what links a program with the host library of a toolchain."""
    return [f"-L{toolchain}", f"-l:{_LIBRARY}", f"-Wl,-rpath,{toolchain}"]


def _failure(status: Status, diagnostics: Sequence[Diagnostic], seconds: float) -> Failure:
    return Failure(status, tuple(diagnostics), seconds)
