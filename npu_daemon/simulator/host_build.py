"""Building the host code of candidates.

Sources become LLVM IR, which is checked (``host_check``), then objects and a shared library. Compiler and
linker run confined, and start no other program.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase, SourceFile, Sources
from ascend_gym.core.status import Status
from ascend_gym.core.wheel import compiler_folder
from npu_daemon.sandbox import Reach, ResourceLimits, run_limited
from npu_daemon.simulator.compiler_errors import compiler_diagnostics
from npu_daemon.simulator.host_check import DEBUG_PLACE, refused_modules
from npu_daemon.simulator.host_toolchain import (
    HOST_HEADERS,
    host_assemble_command,
    host_compile_command,
    host_link_command,
    host_symbols,
)
from npu_daemon.simulator.kernel_ir.block_marks import BlockMarks
from npu_daemon.simulator.kernel_ir.compilation import marks_file

# Arrays of variable length that are set to zero where they are declared: GCC takes them, clang does not.
REFUSED = "variable-sized object may not be initialized"
_CLEARED = re.compile(r"\b(\w+)[ \t]*\[([^][\n]+)\][ \t]*=[ \t]*\{[ \t]*0?[ \t]*\}[ \t]*;")

_CALLBACK = "asim_host_reached"
_NODE = re.compile(r"^!(\d+) = (.+)$", re.MULTILINE)
_LABEL = re.compile(r'(?:[\w.$-]+|"[^"]*"):')
_FIRST = re.compile(r"  %[\w.]+ = (?:phi|landingpad) |          (?:cleanup|catch|filter)\b")
BUILD_LIMITS = ResourceLimits(
    wall_s=60.0, cpu_s=60.0, memory_bytes=4 << 30, file_bytes=256 << 20, folder_bytes=512 << 20
)
_MAX_IR_BYTES = 24 << 20  # of all modules together; the largest operator of cann-ops has 7 MB
_MAX_EXTENTS = 8  # different ones, of arrays of variable length that are initialised
_BUILT = "host.so"
_ENVIRONMENT = {"SOURCE_DATE_EPOCH": "0"}  # what __DATE__ and __TIME__ say
_SOURCE_SUFFIXES = (".cpp", ".cc")
_ACLNN_INCLUDE = re.compile(r'^[^\S\n]*#[^\S\n]*include[^\S\n]*[<"](?:opdev/|aclnn)', re.MULTILINE)


def refused_lines(diagnostics: Iterable[Diagnostic]) -> dict[str, list[int]]:
    """Return by file the lines, counted from 1, at which clang refuses to initialise an array."""
    lines: dict[str, list[int]] = {}
    for each in diagnostics:
        if each.message.startswith(REFUSED) and each.file and each.line:
            lines.setdefault(each.file, []).append(each.line)
    return lines


def with_cleared_arrays(text: str, lines: Sequence[int]) -> str:
    """Return a source whose arrays at some lines, and those of the same extents, are cleared by a call.

    ``uint32_t list[count] = {0};`` becomes a declaration and a call. Only where clang has refused an array is
    text changed: of that array, and of those in the same file with the same extent. Lines stay.
    """
    rows = text.split("\n")
    chosen = [rows[line - 1] for line in lines if line <= len(rows)]
    extents = {extent.strip() for row in chosen for _, extent in _CLEARED.findall(row)}

    def cleared(found: re.Match[str]) -> str:
        name, extent = found.groups()
        if extent.strip() not in extents:
            return found[0]
        return f"{name}[{extent}]; __builtin_memset({name}, 0, sizeof({name}));"

    return _CLEARED.sub(cleared, text)


def with_marks(text: str, marks: BlockMarks) -> str:
    """Return a module whose blocks say that they are reached.

    Args:
        text: as clang has printed the module.
        marks: takes the source places of its blocks.
    """
    nodes = dict(_NODE.findall(text))
    lines: list[str] = []
    block: list[str] | None = None
    for line in text.split("\n"):
        if block is None:
            lines.append(line)
            block = [] if line.startswith("define ") and line.endswith("{") else None
        elif line == "}":
            lines += [*_marked(block, marks, nodes), line]
            block = None
        elif _LABEL.match(line):
            lines += [*_marked(block, marks, nodes), line]
            block = []
        else:
            block.append(line)
    return "\n".join([*lines, f"declare void @{_CALLBACK}(i32)", ""])


def _marked(block: list[str], marks: BlockMarks, nodes: dict[str, str]) -> Iterator[str]:
    """Yield the lines of a block, its mark before the first instruction that may follow others."""
    begin = next((at for at, line in enumerate(block) if line and not _FIRST.match(line)), len(block))
    yield from block[:begin]
    if begin < len(block):
        places = {found[1] for line in block if (found := DEBUG_PLACE.search(line))}
        yield from marks.calls(_CALLBACK, places, nodes)
    yield from block[begin:]


def build_host(
    sources: Sources,
    work_dir: Path,
    toolchain: Path,
    *,
    include_dirs: Sequence[Path] = (),
    limits: ResourceLimits = BUILD_LIMITS,
    marked: bool = False,
) -> Path | Failure:
    """Compile the host sources of a candidate and return the shared library.

    Args:
        sources: host files with paths relative to the operator folder. Files of the aclnn layer are not
            compiled: a kernel launch does not need them.
        work_dir: an existing folder of this build; sources and library are written into it.
        toolchain: folder of the host side in a toolchain (``Toolchain.host_folder``).
        include_dirs: further header folders, for operators that share headers outside their folder.
        limits: what the compiler may use.
        marked: whether blocks say that they are reached; their table lies beside the library.
    """
    compiled = [file.path for file in sources.files if _is_compiled(file)]
    if not compiled:
        message = f"expected a .cpp file with the tiling function, got {[f.path for f in sources.files]}"
        return _failure(Status.BUILD_ERROR, [Diagnostic(phase=Phase.BUILD_TILING, message=message)], 0.0)
    folder = work_dir / "operator"
    _write(sources.files, folder)
    started_s = time.perf_counter()
    folders: list[Path | str] = [*header_folders(sources), *include_dirs]
    build = _HostBuild(sources, folder, toolchain, folders, limits)
    failure = build.compile(compiled) or build.check()
    if failure is None and marked:
        failure = build.mark(compiled, marks_file(work_dir / _BUILT))
    failure = failure or build.link()
    seconds = time.perf_counter() - started_s
    if failure is not None:
        return Failure(failure.status, failure.diagnostics, seconds)
    library = work_dir / _BUILT
    (folder / _BUILT).rename(library)
    return library


@dataclass
class _HostBuild:
    """The steps of one build, in ``folder``; each answers why the next one is not taken, or ``None``."""

    sources: Sources
    folder: Path
    toolchain: Path
    include_dirs: Sequence[Path | str]
    limits: ResourceLimits
    modules: list[str] = field(default_factory=list)

    def compile(self, compiled: Sequence[str], *, optimised: bool = True) -> Failure | None:
        """Make a module of LLVM IR of each source."""
        self.modules = [f"asim_{number}.ll" for number in range(len(compiled))]
        commands = [
            host_compile_command(self.toolchain, source, module, self.include_dirs, optimised=optimised)
            for source, module in zip(compiled, self.modules, strict=True)
        ]
        failure = self._run_all(commands)
        for _ in range(_MAX_EXTENTS):
            if failure is None or not self._clear_arrays(failure):
                break
            failure = self._run_all(commands)
        return failure

    def _clear_arrays(self, failure: Failure) -> bool:
        """Rewrite arrays of variable length that clang does not initialise; say whether there were any."""
        changed = False
        for path, lines in refused_lines(failure.diagnostics).items():
            file = self.folder / path
            text = file.read_text("utf-8")
            cleared = with_cleared_arrays(text, lines)
            file.write_text(cleared, encoding="utf-8")
            changed |= cleared != text
        return changed

    def check(self) -> Failure | None:
        """Look for what tiling programs may not use."""
        paths = [self.folder / module for module in self.modules]
        if sum(path.stat().st_size for path in paths) > _MAX_IR_BYTES:
            limit = f"{_MAX_IR_BYTES >> 20} MiB of LLVM IR"
            message = f"the host code compiles to more than {limit}; make it simpler"
            diagnostic = Diagnostic(phase=Phase.BUILD_TILING, message=message)
            return _failure(Status.RESOURCE_LIMIT, [diagnostic], 0.0)
        texts = [path.read_text("utf-8", "replace") for path in paths]
        return refused_modules(texts, host_symbols(self.toolchain), self.sources)

    def mark(self, compiled: Sequence[str], table: Path) -> Failure | None:
        """Make the modules anew with the blocks of the sources, which say that they are reached.

        Args:
            compiled: the sources, which were checked.
            table: where to write the places of their blocks.
        """
        failure = self.compile(compiled, optimised=False)
        if failure is not None:
            return failure
        marks = BlockMarks()
        for module in self.modules:
            path = self.folder / module
            path.write_text(with_marks(path.read_text("utf-8", "replace"), marks), encoding="utf-8")
        marks.write(table)
        return None

    def link(self) -> Failure | None:
        """Make the library of the modules."""
        objects = [f"{Path(module).stem}.o" for module in self.modules]
        commands = zip(self.modules, objects, strict=True)
        failure = self._run_all(host_assemble_command(module, each) for module, each in commands)
        return failure or self._run(host_link_command(self.toolchain, objects, _BUILT))

    def _run_all(self, commands: Iterable[list[str]]) -> Failure | None:
        """Run commands side by side; return the first failure."""
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            return next((failure for failure in pool.map(self._run, commands) if failure is not None), None)

    def _run(self, command: list[str]) -> Failure | None:
        elsewhere = [path for path in map(Path, self.include_dirs) if path.is_absolute()]
        reach = Reach((self.toolchain, HOST_HEADERS, compiler_folder(), *elsewhere))
        outcome = run_limited(command, cwd=self.folder, limits=self.limits, reach=reach, env=_ENVIRONMENT)
        if outcome.returncode == 0:
            return None
        if outcome.timed_out:
            message = f"compiling the host code took {self.limits.longest()}; make it simpler"
            diagnostic = Diagnostic(phase=Phase.BUILD_TILING, message=message)
            return _failure(Status.TIMEOUT, [diagnostic], outcome.seconds)
        found = compiler_diagnostics(outcome, self.sources, Phase.BUILD_TILING)
        return _failure(Status.BUILD_ERROR, found, outcome.seconds)


def header_folders(sources: Sources) -> list[str]:
    """Return every folder of the sources, for includes that name a header by any part of its path.

    The folders of the main file come first, then those of the operator, then those of shared sources.
    """
    files = sorted(sources.files, key=lambda file: (file.path != sources.main, file.path))
    folders = (str(parent) for file in files for parent in PurePosixPath(file.path).parents)
    return list(dict.fromkeys(folders))


def _is_compiled(file: SourceFile) -> bool:
    return file.path.endswith(_SOURCE_SUFFIXES) and _ACLNN_INCLUDE.search(file.text) is None


def _write(files: Sequence[SourceFile], folder: Path) -> None:
    for file in files:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(file.text, encoding="utf-8")


def _failure(status: Status, diagnostics: Sequence[Diagnostic], seconds: float) -> Failure:
    return Failure(status, tuple(diagnostics), seconds)
