"""What programs of the run side say of their end: the line on which a fault is reported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase
from ascend_gym.core.status import Status
from npu_daemon.sandbox import ProcessOutcome, wall_limit_s
from npu_daemon.simulator.places import PlaceOf, source_rows
from npu_daemon.simulator.task_type import CoreKind

REPORTED_FAULT_EXIT = 3
_WARNING = re.compile(r"warning|estimate (?P<within>[0-9.]{1,12})")
REPORT_S = 2.0
"""Wall seconds that a run has to say where it was."""

_KEYWORDS = {CoreKind.VECTOR: "kernel", CoreKind.CUBE: "cube_kernel"}
_STATUS = {
    "runtime_fault": Status.RUNTIME_FAULT,
    "unsupported": Status.UNSUPPORTED,
    "resource_limit": Status.RESOURCE_LIMIT,
    "timeout": Status.TIMEOUT,
}

_BLOCK = re.compile(r"(cube )?([0-9]{1,9})")
_UB_TAKEN = re.compile(rb"^ub_taken\t([0-9]{1,12})$", re.M)
_MAX_REPORT_BYTES = 4096  # of the line that write_report makes (src/runtime/report.cpp)


def library_lines(libraries: Mapping[CoreKind, Path], task_type: str) -> list[str]:
    """Return the lines of a job that name the kernel's libraries and its task type."""
    return [*(f"{_KEYWORDS[kind]} {path}" for kind, path in libraries.items()), f"task_type {task_type}"]


def limit_lines(timeout_s: float) -> list[str]:
    """Return the lines of a job that say when the run ends itself, so that it can tell where it was."""
    wall_s = wall_limit_s(timeout_s) - REPORT_S
    return [f"time_limit_ms {int(timeout_s * 1000)}", f"wall_limit_ms {int(wall_s * 1000)}"]


def reported_failure(
    outcome: ProcessOutcome,
    libraries: Mapping[CoreKind, Path],
    place_of: PlaceOf,
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
    lines = outcome.stdout[-_MAX_REPORT_BYTES:].decode("utf-8", "replace").splitlines()
    fields = lines[-1].split("\t") if lines else []
    if len(fields) != 5 or fields[0] not in _STATUS:
        return None
    return Failure(_STATUS[fields[0]], (_diagnostic(fields, libraries, place_of),), seconds)


def reported_ub_taken_bytes(outcome: ProcessOutcome) -> int | None:
    """Decode how many bytes of UB the buffers take on the vector core where they take most.

    Args:
        outcome: how the process ended.

    Returns:
        Bytes, or ``None`` where no vector core initialised a buffer.
    """
    told = _UB_TAKEN.search(outcome.stdout)
    return int(told[1]) or None if told else None


def reported_warnings(
    outcome: ProcessOutcome, libraries: Mapping[CoreKind, Path], place_of: PlaceOf, rtol: float
) -> tuple[Diagnostic, ...]:
    """Decode what a run warned of on standard error, which kernels cannot write to.

    Args:
        outcome: how the process ended.
        libraries: built kernels by kind of core.
        place_of: picks the place to show from rows ``FILE:LINE``, the innermost frame first.
        rtol: smallest relative tolerance of an output: estimates that keep it are not worth a word.
    """
    warnings = []
    for row in outcome.stderr.decode("utf-8", "replace").splitlines():
        fields = row.split("\t")
        kind = _WARNING.fullmatch(fields[0])
        if len(fields) == 5 and kind and (kind["within"] is None or rtol <= float(kind["within"])):
            warnings.append(_diagnostic(fields, libraries, place_of))
    return tuple(warnings)


def _diagnostic(fields: list[str], libraries: Mapping[CoreKind, Path], place_of: PlaceOf) -> Diagnostic:
    _, call, block, frames, message = fields
    core = _BLOCK.fullmatch(block)
    library = libraries.get(CoreKind.CUBE if block.startswith("cube ") else CoreKind.VECTOR)
    file, line = place_of(source_rows(frames, library))
    return Diagnostic(
        phase=Phase.RUN_KERNEL,
        message=message,
        call=call,
        file=file,
        line=line,
        block_idx=int(core[2]) if core else None,
    )
