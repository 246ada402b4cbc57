"""The steps from a kernel's sources to its library, each a confined program with limits."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Sequence
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
from npu_daemon.simulator.compiler_errors import compiler_diagnostics
from npu_daemon.simulator.kernel_ir.clang import bitcode_command, overlay
from npu_daemon.simulator.kernel_ir.linker import foreign_symbols, link_command
from npu_daemon.simulator.kernel_ir.refusal import readable_name
from npu_daemon.simulator.kernel_ir.toolchain import KernelToolchain
from npu_daemon.simulator.task_type import CoreKind

_EMITTER = "npu_daemon.simulator.kernel_ir.emit"
_PACKAGE_ROOT = Path(__file__).parents[3]
_KERNEL_ROOT = re.compile(r"^(?:/kernel/|\./)+")
_MAX_MESSAGE = 2000


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
    steps: tuple[Callable[[], Failure | None], ...] = (
        lambda: _compile(source, kind, bitcode, toolchain, limits),
        lambda: _emit(source, bitcode, object_file, source.folder / output, toolchain, limits),
        lambda: _link(source, object_file, source.folder / output, toolchain, limits),
    )
    failure = next((failure for step in steps if (failure := step()) is not None), None)
    for file in (bitcode, object_file):
        file.unlink(missing_ok=True)
    return failure


def _compile(
    source: KernelSource, kind: CoreKind, bitcode: Path, toolchain: KernelToolchain, limits: ResourceLimits
) -> Failure | None:
    overlay_file = bitcode.with_name(f"{bitcode.stem}_overlay.json")
    overlay_file.write_text(overlay(source.folder, toolchain.folder), encoding="utf-8")
    command = bitcode_command(kind, source.main, bitcode, overlay_file, source.include_dirs, source.flags)
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
) -> Failure | None:
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
        return None
    return _refused(answer, source.sources, outcome.seconds)


def count_program(bitcode: Path, output: Path, limits: ResourceLimits) -> Failure | None:
    """Write the bitcode of a user's own program anew, its scalar work counted as that of kernels is.

    Args:
        bitcode: as clang has written it.
        output: in the same folder.
        limits: of the step.
    """
    arguments = [str(bitcode), str(output)]
    outcome = run_limited(arguments, cwd=bitcode.parent, limits=limits, preload=emitter())
    if outcome.returncode == 0 and outcome.exceeded is None:
        return None
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
    return _failure(Status.GUARD_REJECTED, Phase.GUARD, message, outcome.seconds)


def _answer(stdout: bytes) -> dict[str, Any] | None:
    """Return what the emitter says, or ``None`` if that is not what it should be."""
    try:
        answer = json.loads(stdout)
    except (ValueError, RecursionError):
        return None
    known = isinstance(answer, dict) and (
        isinstance(answer.get("refused"), str) or isinstance(answer.get("written_bytes"), int)
    )
    return answer if known else None


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
        message = f"{what} took longer than {limits.wall_s:g} s; make it simpler"
        return _failure(Status.TIMEOUT, Phase.BUILD_KERNEL, message, outcome.seconds)
    message = f"{what} took more than is allowed ({outcome.exceeded}); make it simpler"
    return _failure(Status.RESOURCE_LIMIT, Phase.BUILD_KERNEL, message, outcome.seconds)


def _unreadable(outcome: ProcessOutcome) -> Failure:
    lines = outcome.stderr[-_MAX_MESSAGE:].decode("utf-8", "replace").strip().splitlines()
    log = lines[-1] if lines else ""
    ending = f"signal {outcome.signal}" if outcome.signal else f"exit status {outcome.returncode}"
    message = f"LLVM could not make code of the kernel ({ending}): make it simpler. {log}".strip()
    return _failure(Status.BUILD_ERROR, Phase.BUILD_KERNEL, message, outcome.seconds)


def _failure(status: Status, phase: Phase, message: str, seconds: float) -> Failure:
    return Failure(status, (Diagnostic(phase=phase, message=message),), seconds)
