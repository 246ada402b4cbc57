"""Runs a trusted program on a trace that an untrusted process wrote: within limits; it answers in JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Phase
from ascend_gym.core.status import Status
from npu_daemon.sandbox import MemoryFile, ProcessOutcome, Reach, ResourceLimits, run_limited

MEMORY_BYTES = 4 << 30  # on top of the trace, which is mapped
_OUTPUT_BYTES = 256 << 20
_FILE_BYTES = 64 << 30
_OUT_OF_MEMORY_EXIT = 5

# One heap of huge pages that is never given back: half of what pricing a trace takes is faults otherwise.
# The C library of a host may not know these names; it ignores them then.
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage")  # the C library asks there whether there are any
_HEAP_ENVIRONMENT = {
    "GLIBC_TUNABLES": ":".join(
        f"glibc.malloc.{name}={value}"
        for name, value in (("hugetlb", 1), ("mmap_threshold", 2**30), ("trim_threshold", 2**30))
    )
}


def read_trace(
    program: Path,
    trace: Path | MemoryFile,
    arguments: Sequence[Path | MemoryFile | str],
    *,
    phase: Phase,
    verb: str,
    timeout_s: float,
    memory_bytes: int = MEMORY_BYTES,
    writes_in: Path | None = None,
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
        writes_in: folder that it may write in; by default it writes nothing.
    """
    files = [each for each in (trace, *arguments) if not isinstance(each, str)]
    named = [each for each in files if isinstance(each, Path)]
    limits = ResourceLimits(
        wall_s=timeout_s,
        cpu_s=timeout_s + 1.0,
        memory_bytes=memory_bytes + _size_bytes(trace),
        file_bytes=_FILE_BYTES,
        output_bytes=_OUTPUT_BYTES,
    )
    outcome = run_limited(
        [str(program.resolve()), *(_argument(each) for each in (trace, *arguments))],
        cwd=writes_in or program.resolve().parent,
        limits=limits,
        reach=Reach((*(each.resolve() for each in named), _HUGE_PAGES), keeps_files=writes_in is not None),
        env=_HEAP_ENVIRONMENT,
        pass_fds=[each.fd for each in files if isinstance(each, MemoryFile)],
    )
    answer = _answer(outcome, verb, timeout_s, memory_bytes)
    if isinstance(answer, dict):
        return answer
    status, message = answer
    return Failure.of(status, phase, message, outcome.seconds)


def _answer(
    outcome: ProcessOutcome, verb: str, timeout_s: float, memory_bytes: int
) -> dict[str, Any] | tuple[Status, str]:
    """Return what a program printed, or as what and why it failed; see ``read_trace``."""
    if outcome.timed_out:
        return Status.TIMEOUT, f"the kernel issues more than can be {verb} in {timeout_s:g} s"
    if outcome.returncode == _OUT_OF_MEMORY_EXIT:
        gib = memory_bytes / (1 << 30)
        return Status.RESOURCE_LIMIT, f"the kernel issues more than can be {verb} in {gib:g} GiB of memory"
    if outcome.returncode != 0:
        said = outcome.stderr.decode("utf-8", "replace").strip()
        return Status.GUARD_REJECTED, f"the trace cannot be {verb}: {said or f'signal {outcome.signal}'}"
    try:
        answer: dict[str, Any] = json.loads(outcome.stdout)
    except ValueError:  # a figure that no number of JSON holds
        return Status.GUARD_REJECTED, f"the trace cannot be {verb}: it adds up to no finite figures"
    return answer


def _argument(value: Path | MemoryFile | str) -> str:
    if isinstance(value, Path):
        return str(value.resolve())
    return value.path if isinstance(value, MemoryFile) else value


def _size_bytes(file: Path | MemoryFile) -> int:
    return file.size_bytes if isinstance(file, MemoryFile) else file.stat().st_size
