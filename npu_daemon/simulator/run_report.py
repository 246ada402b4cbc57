"""What programs of the run side say of their end: the line on which a fault is reported."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase
from ascend_gym.core.status import Status
from npu_daemon.sandbox import ProcessOutcome
from npu_daemon.simulator.task_type import CoreKind

REPORTED_FAULT_EXIT = 3
_KEYWORDS = {CoreKind.VECTOR: "kernel", CoreKind.CUBE: "cube_kernel"}
_STATUS = {
    "runtime_fault": Status.RUNTIME_FAULT,
    "unsupported": Status.UNSUPPORTED,
    "resource_limit": Status.RESOURCE_LIMIT,
    "timeout": Status.TIMEOUT,
}

Place = tuple[str | None, int | None]
"""File and line, where they are known."""


def library_lines(libraries: Mapping[CoreKind, Path], task_type: str) -> list[str]:
    """Return the lines of a job that name the kernel's libraries and its task type."""
    return [*(f"{_KEYWORDS[kind]} {path}" for kind, path in libraries.items()), f"task_type {task_type}"]


def reported_failure(
    outcome: ProcessOutcome,
    libraries: Mapping[CoreKind, Path],
    place_of: Callable[[Iterable[str]], Place],
    seconds: float,
) -> Failure | None:
    """Decode the last line of a run that ended in a fault: kind, call, block, frames and message.

    Args:
        outcome: how the process ended.
        libraries: built kernels by kind of core.
        place_of: picks the place to show from rows ``FILE:LINE``, the innermost frame first.
        seconds: wall seconds of the run.

    Returns:
        The failure; ``None`` where the line is no such report.
    """
    lines = outcome.stdout.decode("utf-8", "replace").splitlines()
    fields = lines[-1].split("\t") if lines else []
    if len(fields) != 5 or fields[0] not in _STATUS:
        return None
    kind, call, block, frames, message = fields
    *cube, index = block.split(" ")
    library = libraries.get(CoreKind.CUBE if cube else CoreKind.VECTOR)
    file, line = place_of(source_rows(frames, library))
    diagnostic = Diagnostic(
        phase=Phase.RUN_KERNEL,
        message=message,
        call=call,
        file=file,
        line=line,
        block_idx=int(index) if index.isdigit() else None,
    )
    return Failure(_STATUS[kind], (diagnostic,), seconds)


def source_rows(frames: str, library: Path | None) -> list[str]:
    """Return a row ``FILE:LINE`` for each frame, inlined ones too; none without frames or library."""
    if not frames or library is None:
        return []
    command = ["addr2line", "-i", "-e", str(library), *(f"0x{frame}" for frame in frames.split(","))]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
