"""The steps from a kernel's sources to its library, each a confined program with limits."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase, Sources
from ascend_gym.core.status import Status
from ascend_gym.core.wheel import compiler_folder
from npu_daemon.sandbox import Preload, ProcessOutcome, Reach, ResourceLimits, run_limited, start_loading
from npu_daemon.simulator.compiler import lld
from npu_daemon.simulator.compiler_errors import compiler_diagnostics
from npu_daemon.simulator.elf_symbols import dynamic_symbols
from npu_daemon.simulator.kernel_ir.clang import bitcode_command, overlay
from npu_daemon.simulator.kernel_ir.device_language import LOOK, LOOK_AT_MARKED, Offence, spells_cast
from npu_daemon.simulator.kernel_ir.instrumenter import CALLBACKS
from npu_daemon.simulator.kernel_ir.refusal import readable_name
from npu_daemon.simulator.kernel_ir.toolchain import KernelToolchain
from npu_daemon.simulator.task_type import CoreKind

_EMITTER = "npu_daemon.simulator.kernel_ir.emit"
_PACKAGE_ROOT = Path(__file__).parents[3]
_KERNEL_ROOT = re.compile(r"^(?:/kernel/|\./)+")
_MAX_MESSAGE = 2000
STACK_POINTER = "__safestack_unsafe_stack_ptr"  # the run program's, one for each block (SafeStack)
_CALLBACK_NAMES = frozenset(line.partition("@")[2].partition("(")[0] for line in CALLBACKS)
_OPTIONS = ("-shared", "--build-id=none", "--hash-style=gnu", "--eh-frame-hdr", "-z", "now", "-z", "relro")


@dataclass(frozen=True)
class KernelSource:
    """What is compiled, in the folder where its files lie.

    Attributes:
        folder: holds the sources; gets everything that is made of them.
        main: file to compile, relative to it.
        sources: for diagnostics.
        include_dirs: relative to the folder.
        flags: the candidate's own, but for macros, which ``main`` defines.
        marked: whether blocks say that they are reached; their table is the ``marks_file`` of the library.
    """

    folder: Path
    main: str
    sources: Sources
    include_dirs: Sequence[str]
    flags: Sequence[str]
    marked: bool = False


@cache
def emitter() -> Preload:
    """Return the program that makes objects of bitcode.

    Raises:
        InfrastructureError: a package that it needs is not installed.
    """
    found = importlib.util.find_spec("llvmlite")
    if found is None or found.origin is None:
        raise InfrastructureError(
            "the simulator needs the package llvmlite, which is not installed: "
            "pip install 'ascend-gym[simulator]'"
        )
    return Preload(_EMITTER, (_PACKAGE_ROOT, Path(found.origin).parent.parent))


def marks_file(library: Path) -> Path:
    """Return where the table of the marked blocks of a library lies."""
    return library.with_suffix(".marks")


def build_library(
    source: KernelSource, kind: CoreKind, output: str, toolchain: KernelToolchain, limits: ResourceLimits
) -> Failure | None:
    """Make the library of a kernel for one kind of core.

    Args:
        source: what to compile.
        kind: the kind of core.
        output: name of the library in the folder of ``source``.
        toolchain: what compiler and linker need.
        limits: of each step.
    """
    start_loading(emitter())
    bitcode = source.folder / f"asim_{kind.value}.bc"
    object_file = bitcode.with_suffix(".o")
    try:
        failure = _compile(source, kind, bitcode, toolchain, limits)
        if failure is not None:
            return failure
        emitted = _emit(source, bitcode, object_file, source.folder / output, toolchain, limits)
        if isinstance(emitted, Failure):
            return emitted
        if emitted.may_offend:
            failure = _look(source, kind, bitcode, toolchain, limits)
        return failure or _link(source, object_file, source.folder / output, toolchain, limits)
    finally:
        for file in (bitcode, object_file):
            file.unlink(missing_ok=True)


@dataclass(frozen=True)
class Emitted:
    """What the emitter says of a module that it has written.

    Attributes:
        may_offend: whether the module has to be looked at before optimisation (``device_language``).
    """

    may_offend: bool


def _look(
    source: KernelSource, kind: CoreKind, bitcode: Path, toolchain: KernelToolchain, limits: ResourceLimits
) -> Failure | None:
    """Compile a kernel again, without optimisation, and refuse what the compiler of devices refuses."""
    failure = _compile(source, kind, bitcode, toolchain, limits, optimised=False)
    if failure is not None:
        return failure
    found = find_offences(bitcode, limits, marked_only=False)
    if isinstance(found, Failure):
        return found
    texts = {file.path: file.text for file in source.sources.files}
    for offence in found:
        file, line = _own_place([list(offence.place)], source.sources)
        if file is None or line is None:
            continue
        if offence.if_spelt and not spells_cast(texts[file], line, offence.column):
            continue
        diagnostic = Diagnostic(phase=Phase.BUILD_KERNEL, message=offence.message, file=file, line=line)
        return Failure(Status.BUILD_ERROR, (diagnostic,))
    return None


def find_offences(bitcode: Path, limits: ResourceLimits, *, marked_only: bool) -> list[Offence] | Failure:
    """Return what the compiler of devices refuses in a module.

    Args:
        bitcode: not optimised.
        limits: of the step.
        marked_only: whether only marked functions are of kernels (``device_language.MARK``).
    """
    arguments = [LOOK_AT_MARKED if marked_only else LOOK, str(bitcode)]
    outcome = run_limited(arguments, cwd=bitcode.parent, limits=limits, preload=emitter())
    if outcome.returncode != 0 or outcome.exceeded is not None:
        return _exceeded("reading the kernel", outcome, limits) or _unreadable(outcome)
    found = _json_of(outcome.stdout).get("offences")
    return [offence for row in found if (offence := _offence(row))] if isinstance(found, list) else []


def _offence(row: object) -> Offence | None:
    """Return an offence as the emitter lists it, or ``None`` if it is not what it should be."""
    match row:
        case [str(message), [str(file), int(line)], int(column), bool(if_spelt)]:
            return Offence(message, (file, line), column, if_spelt)
    return None


def _compile(
    source: KernelSource,
    kind: CoreKind,
    bitcode: Path,
    toolchain: KernelToolchain,
    limits: ResourceLimits,
    *,
    optimised: bool = True,
) -> Failure | None:
    overlay_file = bitcode.with_name(f"{bitcode.stem}_overlay.json")
    overlay_file.write_text(overlay(source.folder, toolchain.folder), encoding="utf-8")
    command = bitcode_command(
        kind, source.main, bitcode, overlay_file, source.include_dirs, source.flags, optimised=optimised
    )
    reach = Reach((toolchain.folder, *toolchain.headers, compiler_folder() / "lib"))
    outcome = run_limited(command, cwd=source.folder, limits=limits, reach=reach)
    if outcome.returncode == 0 and outcome.exceeded is None:
        return None
    return _exceeded("compiling the kernel", outcome, limits) or Failure(
        Status.BUILD_ERROR,
        tuple(compiler_diagnostics(outcome, source.sources, Phase.BUILD_KERNEL)),
        outcome.seconds,
    )


def _emit(
    source: KernelSource,
    bitcode: Path,
    object_file: Path,
    library: Path,
    toolchain: KernelToolchain,
    limits: ResourceLimits,
) -> Emitted | Failure:
    arguments = [str(bitcode), str(object_file), str(toolchain.interface_file), toolchain.processor]
    arguments += [str(marks_file(library))] if source.marked else []
    reach = Reach((toolchain.interface_file,))
    outcome = run_limited(arguments, cwd=source.folder, limits=limits, reach=reach, preload=emitter())
    if outcome.returncode != 0 or outcome.exceeded is not None:
        return _exceeded("generating code of the kernel", outcome, limits) or _unreadable(outcome)
    answer = _answer(outcome.stdout)
    if answer is None:
        return _unreadable(outcome)
    if "refused" not in answer:
        return Emitted(answer.get("may_offend") is True)
    return _refused(answer, source.sources, outcome.seconds)


def count_program(bitcode: Path, output: Path, limits: ResourceLimits) -> Emitted | Failure:
    """Write the bitcode of a user's own program anew, its scalar work counted as that of kernels is.

    Args:
        bitcode: as clang has written it.
        output: in the same folder.
        limits: of the step.
    """
    arguments = [str(bitcode), str(output)]
    outcome = run_limited(arguments, cwd=bitcode.parent, limits=limits, preload=emitter())
    if outcome.returncode == 0 and outcome.exceeded is None:
        return Emitted(_json_of(outcome.stdout).get("may_offend") is True)
    return _exceeded("counting the work of the program", outcome, limits) or _unreadable(outcome)


def _link(
    source: KernelSource, object_file: Path, library: Path, toolchain: KernelToolchain, limits: ResourceLimits
) -> Failure | None:
    command = link_command((object_file, toolchain.support_object), library)
    reach = Reach((toolchain.folder, compiler_folder() / "lib"))
    outcome = run_limited(command, cwd=source.folder, limits=limits, reach=reach)
    if outcome.returncode != 0 or outcome.exceeded is not None:
        return _exceeded("linking the kernel", outcome, limits) or _unreadable(outcome)
    try:
        foreign = foreign_symbols(library, toolchain.interface_symbols)
    except ValueError:
        return _unreadable(outcome)
    if not foreign:
        return None
    names = ", ".join(readable_name(name)[:200] for name in foreign[:5])
    message = f"the kernel needs {names}, which it may not call: use operations that the processor has"
    return Failure.of(Status.GUARD_REJECTED, Phase.GUARD, message, outcome.seconds)


def _answer(stdout: bytes) -> dict[str, Any] | None:
    """Return what the emitter says, or ``None`` if that is not what it should be."""
    answer = _json_of(stdout)
    known = isinstance(answer.get("refused"), str) or isinstance(answer.get("written_bytes"), int)
    return answer if known else None


def _json_of(stdout: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(stdout)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _refused(answer: dict[str, Any], sources: Sources, seconds: float) -> Failure:
    """Return the failure of a kernel that was refused, at the innermost line of its own files."""
    unprovided = answer.get("unprovided") is True
    phase = Phase.BUILD_KERNEL if unprovided else Phase.GUARD
    file, line = _own_place(answer.get("places"), sources)
    diagnostic = Diagnostic(phase=phase, message=answer["refused"][:_MAX_MESSAGE], file=file, line=line)
    return Failure(Status.BUILD_ERROR if unprovided else Status.GUARD_REJECTED, (diagnostic,), seconds)


def _own_place(places: object, sources: Sources) -> tuple[str | None, int | None]:
    own = {file.path for file in sources.files}
    for place in places if isinstance(places, list) else ():
        if not (isinstance(place, list) and len(place) == 2 and isinstance(place[0], str)):
            continue
        path = _KERNEL_ROOT.sub("", place[0])
        if path in own and isinstance(place[1], int) and place[1] > 0:
            return path, place[1]
    return None, None


def _exceeded(what: str, outcome: ProcessOutcome, limits: ResourceLimits) -> Failure | None:
    if outcome.exceeded is None:
        return None
    if outcome.timed_out:
        message = f"{what} took {limits.longest()}; make it simpler"
        return Failure.of(Status.TIMEOUT, Phase.BUILD_KERNEL, message, outcome.seconds)
    message = f"{what} took more than is allowed ({outcome.exceeded}); make it simpler"
    return Failure.of(Status.RESOURCE_LIMIT, Phase.BUILD_KERNEL, message, outcome.seconds)


def _unreadable(outcome: ProcessOutcome) -> Failure:
    lines = outcome.stderr[-_MAX_MESSAGE:].decode("utf-8", "replace").strip().splitlines()
    log = lines[-1] if lines else ""
    ending = f"signal {outcome.signal}" if outcome.signal else f"exit status {outcome.returncode}"
    message = f"LLVM could not make code of the kernel ({ending}): make it simpler. {log}".strip()
    return Failure.of(Status.BUILD_ERROR, Phase.BUILD_KERNEL, message, outcome.seconds)


def link_command(objects: tuple[Path, ...], output: Path) -> list[str]:
    """Return the call that links a library without any other."""
    return lld(*_OPTIONS, *map(str, objects), "-o", str(output))


def foreign_symbols(library: Path, interface: Set[str]) -> list[str]:
    """Return what a linked kernel takes from elsewhere and the run program does not offer to kernels.

    The verifier lets no such function through; what is left is what code generation calls by itself.

    Raises:
        ValueError: it is no library that the linker made.
    """
    return sorted(dynamic_symbols(library).undefined - interface - _CALLBACK_NAMES - {STACK_POINTER})
