"""Builds of programs that launch kernels themselves (``.asc`` files), one per kind of core that they use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase
from ascend_gym.core.status import Status
from npu_daemon.profiling.asc_source import code_of_files, has_launches, kernel_types, with_launch_calls
from npu_daemon.sandbox import ProcessOutcome, Reach, ResourceLimits, run_limited
from npu_daemon.simulator.kernel_ir.compilation import count_program, find_offences
from npu_daemon.simulator.kernel_ir.device_language import Offence, spells_cast
from npu_daemon.simulator.own_sources import INCLUDE
from npu_daemon.simulator.program_compiler import (
    program_bitcode_command,
    program_object_command,
    program_options,
    program_text_command,
)
from npu_daemon.simulator.task_type import CoreKind, TaskType, core_kinds, task_types
from npu_daemon.simulator.toolchain import Toolchain

SOURCE_SUFFIXES = (".asc", ".h", ".hpp", ".cpp", ".cc", ".inc")
_MEMORY_BYTES = 6 * 2**30
_FILE_BYTES = 256 * 2**20
_SHOWN_ERRORS = 5
_ERROR_LINE = re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<message>.*)$")
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_MAIN = re.compile(r"\bint(?:32_t)?\s+main\s*\(")
_UNRESOLVED = re.compile(r"undefined reference to .*|undefined symbol: .*")


@dataclass(frozen=True)
class AscProgram:
    """A program to profile.

    Attributes:
        source: ``.asc`` file; the files that it includes are found relative to it.
        defines: macros ``NAME`` or ``NAME=VALUE``.
        arguments: arguments of its main function, after the program name.
        price_only: whether to skip the arithmetic of matrix multiplications, on which no price depends;
            outputs are then meaningless.
        confined: whether it may use nothing but its working folder, for programs of others.
        include_dirs: further folders whose headers it includes, which may launch kernels too.
    """

    source: Path
    defines: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    price_only: bool = False
    confined: bool = False
    include_dirs: tuple[Path, ...] = ()

    @property
    def folder(self) -> Path:
        """Folder of the program's own files."""
        return self.source.resolve().parent

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders where its files are looked for: its own, then those of ``include_dirs``."""
        return (self.folder, *(each.resolve() for each in self.include_dirs))


@dataclass(frozen=True)
class ProgramBuild:
    """A built program.

    Attributes:
        libraries: the program compiled for each kind of core.
        expected_type: kind of cores of a kernel that does not declare it.
    """

    libraries: Mapping[CoreKind, Path]
    expected_type: TaskType


def build_program(
    program: AscProgram, folder: Path, toolchain: Toolchain, timeout_s: float
) -> ProgramBuild | Failure:
    """Compile a program into libraries in ``folder``.

    Args:
        program: sources.
        folder: output folder, with one library per kind of core.
        toolchain: compiler.
        timeout_s: wall seconds per compiler call.

    Raises:
        MisuseError: the program has no main function, no launch, or one that cannot be parsed.
    """
    code = _read_code(program, folder, toolchain, timeout_s)
    if isinstance(code, Failure):
        return code
    _require_program(program, code)
    types = kernel_types([code])
    _write_rewritten(program, _own_texts(program), types, folder)
    expected = task_types(code)
    libraries = {}
    for kind in core_kinds(list({*expected, *types.values()})):
        library = folder / f"program_{kind.value}.so"
        failure = _compile(program, kind, library, toolchain, timeout_s)
        if failure is not None:
            return failure
        libraries[kind] = library
    return ProgramBuild(libraries, expected[0])


def _require_program(program: AscProgram, code: str) -> None:
    expected = "expected kernels and a main function that launches them in one file and what it includes"
    if not has_launches(code):
        raise MisuseError(f"{program.source} launches no kernel<<<...>>>(...): {expected}")
    if not _MAIN.search(code):
        raise MisuseError(f"{program.source} has no main function: {expected}")


def _read_code(program: AscProgram, folder: Path, toolchain: Toolchain, timeout_s: float) -> str | Failure:
    """Return the code of the program's own files after preprocessing."""
    source, text = str(program.source.resolve()), "program.ii"
    command = program_text_command(CoreKind.VECTOR, source, text, program.folders, program.defines)
    failure = _call_compiler(command, folder, program, toolchain, timeout_s)
    if failure is not None:
        return failure
    preprocessed = (folder / text).read_text(encoding="utf-8", errors="replace")
    return code_of_files(preprocessed, [str(each) for each in program.folders])


def own_files(program: AscProgram) -> list[Path]:
    """Return the source files of the program's folders."""
    found = (path for each in program.folders for path in each.rglob("*") if path.suffix in SOURCE_SUFFIXES)
    return sorted({path for path in found if path.is_file()})


def _own_texts(program: AscProgram) -> dict[Path, str]:
    """Return the texts of the main file and of all files of its folders that it includes, also indirectly."""
    by_name = {path.name: path for path in own_files(program) if path.is_relative_to(program.folder)}
    texts: dict[Path, str] = {}
    waiting = [program.source.resolve()]
    while waiting:
        path = waiting.pop()
        texts[path] = path.read_text(encoding="utf-8-sig", errors="replace")
        for name in _INCLUDE.findall(texts[path]):
            places = [path.parent / name, *(each / name for each in program.folders)]
            beside = by_name.get(Path(name).name)
            found = next((each.resolve() for each in places if each.is_file()), beside)
            if found is not None and found not in texts and _relative(program, found) is not None:
                waiting.append(found)
    return texts


def _relative(program: AscProgram, path: Path) -> Path | None:
    """Return the path of a file in the innermost folder of the program that it lies in."""
    inside = [path.relative_to(each) for each in program.folders if path.is_relative_to(each)]
    return min(inside, key=lambda each: len(each.parts), default=None)


def _unit(program: AscProgram) -> str:
    """Return the name of the main file's translation unit."""
    return f"{program.source.name}.cpp"


def _write_rewritten(
    program: AscProgram, texts: Mapping[Path, str], types: Mapping[str, TaskType], folder: Path
) -> None:
    """Write the main file and each included file with launches, rewritten, into ``folder``.

    Files without launches are included from their original place.
    """
    launches = 0
    for path, text in texts.items():
        main = path == program.source.resolve()
        relative = _relative(program, path)
        if relative is None or (not main and not has_launches(text)):
            continue
        target = folder / (_unit(program) if main else relative)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(
            f'#line 1 "{relative}"\n{with_launch_calls(text, types, launches)}', encoding="utf-8"
        )
        launches += text.count("<<<")


def _compile(
    program: AscProgram, kind: CoreKind, library: Path, toolchain: Toolchain, timeout_s: float
) -> Failure | None:
    """Build the library of a program from bitcode and an object file, which are written next to it.

    Args:
        program: sources.
        kind: kind of core.
        library: output file.
        toolchain: compiler.
        timeout_s: wall seconds per compiler call.
    """
    bitcode, counted = library.with_suffix(".bc"), library.with_suffix(".counted.bc")
    object_file = library.with_suffix(".o")
    compiler = _front_end_command(program, kind, bitcode, toolchain)
    assembler = program_object_command(counted.name, object_file.name)
    linker = toolchain.program_link_command(object_file.name, library.name)
    failure = _call_compiler(compiler, library.parent, program, toolchain, timeout_s)
    if failure is not None:
        return failure
    written = count_program(bitcode, counted, _limits(timeout_s))
    if isinstance(written, Failure):
        return written
    return (
        (_look(program, kind, library, toolchain, timeout_s) if written.may_offend else None)
        or _call_compiler(assembler, library.parent, program, toolchain, timeout_s)
        or _call_compiler(linker, library.parent, program, toolchain, timeout_s)
    )


def _front_end_command(
    program: AscProgram, kind: CoreKind, bitcode: Path, toolchain: Toolchain, *, optimised: bool = True
) -> list[str]:
    """Return the call that makes bitcode, with kernels marked where it is not optimised."""
    return program_bitcode_command(
        program_options(kind, marked=not optimised),
        toolchain.program_header(kind, marked=not optimised),
        _unit(program),
        bitcode.name,
        [Path(), *program.folders],  # rewritten files first
        program.defines,
        optimised=optimised,
    )


def _look(
    program: AscProgram, kind: CoreKind, library: Path, toolchain: Toolchain, timeout_s: float
) -> Failure | None:
    """Refuse what the compiler of devices refuses in functions of kernels (``device_language``).

    Functions are marked by their qualifiers (``__aicore__``). A program that has one where no mark can
    stand is not looked at: it has been compiled without marks.
    """
    bitcode = library.with_suffix(".look.bc")
    command = _front_end_command(program, kind, bitcode, toolchain, optimised=False)
    if _call_compiler(command, library.parent, program, toolchain, timeout_s) is not None:
        return None
    found = find_offences(bitcode, _limits(timeout_s), marked_only=True)
    if isinstance(found, Failure):
        return found
    own = [offence for offence in found if not Path(offence.place[0]).is_relative_to(INCLUDE)]
    spelt = [offence for offence in own if not offence.if_spelt or _spells_cast(program, offence)]
    if not spelt:
        return None
    diagnostics = (
        Diagnostic(
            phase=Phase.BUILD_KERNEL,
            message=offence.message,
            file=offence.place[0],
            line=offence.place[1],
        )
        for offence in spelt[:_SHOWN_ERRORS]
    )
    return Failure(Status.BUILD_ERROR, tuple(diagnostics))


def _spells_cast(program: AscProgram, offence: Offence) -> bool:
    file, line = offence.place
    path = program.folder / file
    if not path.is_file():
        return False
    return spells_cast(path.read_text(encoding="utf-8-sig", errors="replace"), line, offence.column)


def _limits(timeout_s: float) -> ResourceLimits:
    return ResourceLimits(
        wall_s=timeout_s, cpu_s=timeout_s, memory_bytes=_MEMORY_BYTES, file_bytes=_FILE_BYTES
    )


def _call_compiler(
    command: list[str], folder: Path, program: AscProgram, toolchain: Toolchain, timeout_s: float
) -> Failure | None:
    """Run a compiler that writes into ``folder`` and reads the program; return its errors as a failure.

    Args:
        command: command line.
        folder: working folder.
        program: sources.
        toolchain: compiler.
        timeout_s: wall seconds.
    """
    reads = (*toolchain.compiler_reads, *program.folders)
    reach = Reach(reads, starts_programs=True, programs=toolchain.compiler_programs)
    outcome = run_limited(command, cwd=folder, limits=_limits(timeout_s), reach=reach)
    if outcome.timed_out:
        message = f"compiling took longer than {timeout_s:g} s"
        return Failure.of(Status.TIMEOUT, Phase.BUILD_KERNEL, message)
    if outcome.returncode != 0:
        return Failure(Status.BUILD_ERROR, _compiler_errors(outcome), outcome.seconds)
    return None


def _compiler_errors(outcome: ProcessOutcome) -> tuple[Diagnostic, ...]:
    text = outcome.stderr.decode("utf-8", "replace")
    found = [match for match in map(_ERROR_LINE.match, text.splitlines()) if match]
    if found:
        return tuple(
            Diagnostic(
                phase=Phase.BUILD_KERNEL, message=one["message"], file=one["file"], line=int(one["line"])
            )
            for one in found[:_SHOWN_ERRORS]
        )
    unresolved = _UNRESOLVED.findall(text)
    message = "; ".join(unresolved[:_SHOWN_ERRORS]) or " ".join(text.split()[-60:]) or "no message"
    return (Diagnostic(phase=Phase.BUILD_KERNEL, message=f"the compiler failed: {message}"),)
