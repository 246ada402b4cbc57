"""Runs a trusted program on a trace that an untrusted process wrote: within limits; it answers in JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase
from ascend_gym.core.status import Status
from npu_daemon.sandbox import Limits, Reach, run_limited

MEMORY_BYTES = 4 << 30  # on top of the trace, which is mapped
_OUTPUT_BYTES = 256 << 20
_FILE_BYTES = 64 << 30
_OUT_OF_MEMORY_EXIT = 5


def read_trace(
    program: Path,
    trace: Path,
    arguments: Sequence[Path | str],
    *,
    phase: Phase,
    verb: str,
    timeout_s: float,
    memory_bytes: int = MEMORY_BYTES,
) -> dict[str, Any] | Failure:
    """Return what ``program`` says about ``trace``, or why it says nothing.

    Args:
        program: prints one JSON document.
        trace: its first argument.
        arguments: the others.
        phase: of diagnostics.
        verb: what the program does with a trace, as a past participle: for messages.
        timeout_s: wall seconds the program may take.
        memory_bytes: how much address space it may use on top of the size of the trace.
    """
    others = [str(each.resolve()) if isinstance(each, Path) else each for each in arguments]
    limits = Limits(
        wall_s=timeout_s,
        cpu_s=timeout_s + 1.0,
        memory_bytes=memory_bytes + trace.stat().st_size,
        file_bytes=_FILE_BYTES,
        output_bytes=_OUTPUT_BYTES,
    )
    command = [str(program.resolve()), str(trace.resolve()), *others]
    reach = Reach(tuple(each.resolve() for each in arguments if isinstance(each, Path)))
    outcome = run_limited(command, cwd=trace.resolve().parent, limits=limits, reach=reach)
    said = outcome.stderr.decode("utf-8", "replace").strip()

    def failure(status: Status, message: str) -> Failure:
        return Failure(status, (Diagnostic(phase=phase, message=message),), outcome.seconds)

    if outcome.timed_out:
        return failure(Status.TIMEOUT, f"the kernel issues more than can be {verb} in {timeout_s:g} s")
    if outcome.returncode == _OUT_OF_MEMORY_EXIT:
        return failure(
            Status.RESOURCE_LIMIT,
            f"the kernel issues more than can be {verb} in {memory_bytes / (1 << 30):g} GiB of memory",
        )
    if outcome.returncode != 0:
        return failure(
            Status.GUARD_REJECTED, f"the trace cannot be {verb}: {said or f'signal {outcome.signal}'}"
        )
    answer: dict[str, Any] = json.loads(outcome.stdout)
    return answer
