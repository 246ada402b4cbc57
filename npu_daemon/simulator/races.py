"""Accesses to the same bytes in an order that nothing fixes: looked for in the trace of every run.

Blocks are executed one after another, and each instruction of a block is over before the next one starts.
On the device the pipes of a core and the cores work at the same time, and only flags, barriers, queues and
meetings of the cores order them. A kernel that leaves two accesses unordered, one of them a write, is right
here by luck.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase
from ascend_gym.core.status import Status
from npu_daemon.sandbox import MemoryFile, ResourceLimits
from npu_daemon.simulator.build_cache import KernelBuild
from npu_daemon.simulator.call_names import call_name
from npu_daemon.simulator.kernel_run import KernelJob
from npu_daemon.simulator.places import PlaceOf, own_place, places_by_frames
from npu_daemon.simulator.task_type import CoreKind
from npu_daemon.simulator.toolchain import Toolchain
from npu_daemon.simulator.trace_program import read_trace

RACES_TIMEOUT_S = 120.0
_MEMORIES = (
    "unified buffer",
    "global memory",
    "L1",
    "L0A",
    "L0B",
    "L0C",
    "bias table",
    "fixpipe buffer",
)
_GLOBAL = _MEMORIES.index("global memory")
_REGISTERS = len(_MEMORIES)  # the space after them
_REGISTER_BYTES = 8
_REGISTER_READS = ("GetReduceRepeatMaxMinSpr", "GetReduceRepeatSumSpr", "GetMrgSortResult")
_REASONS = {
    "register": "nothing orders the two: SetFlag and WaitFlag<HardEvent::V_S> between them",
    "unwritten": "what a scalar store leaves in the data cache of its core need not be in global memory: "
    "call DataCacheCleanAndInvalid after it",
    "stale": "the line was in the data cache of the core that reads it before it was written: "
    "call DataCacheCleanAndInvalid before reading it again",
    "line shared": "lines of the data cache are written back whole, 64 bytes: keep what different cores, or "
    "scalar stores and copies, write in different lines, or store with WriteGmByPassDCache",
}


@dataclass(frozen=True)
class _Access:
    """One of the two instructions of a race.

    Attributes:
        trace: which of the cores of the launch issued it.
        block: its index among the cores of its kind.
        core: ``cube`` or ``vector`` in launches with both kinds, else empty.
        ordinal: its position among the trace records of the block.
        call: name of the instruction, as kernels call it.
        pipe: where it executes.
        writes: whether it writes the bytes in question.
        file: source of the kernel, if it could be told.
        line: in that file.
    """

    trace: int
    block: int
    core: str
    ordinal: int
    call: str
    pipe: str
    writes: bool
    file: str | None = None
    line: int | None = None

    def described(self, what: str) -> str:
        """Return the access, to ``what``, as words of a sentence."""
        place = f" at {self.file}:{self.line}" if self.file else ""
        verb = "writes" if self.writes else "reads"
        core = f"{self.core} core, " if self.core else ""
        return f"{self.call}{place} ({core}block {self.block}, pipe {self.pipe}) {verb} {what}"


@dataclass(frozen=True)
class TracedRun:
    """A run that ended well.

    Attributes:
        trace: what it left.
        tensor_ranges: lines ``in|out address bytes name``: inputs are never written.
        libraries: what ran, by kind of core.
        place_of: picks the place to show from rows ``FILE:LINE``, the innermost frame first.
        run_again: runs the same once more with further lines of its job, and returns what it printed.
    """

    trace: Path | MemoryFile
    tensor_ranges: str
    libraries: Mapping[CoreKind, Path]
    place_of: PlaceOf
    run_again: Callable[[str], str]


def find_race(
    toolchain: Toolchain, job: KernelJob, kernel: KernelBuild, limits: ResourceLimits, *, auto_sync: bool
) -> Failure | tuple[Diagnostic, ...]:
    """Return a failure that names both accesses of the first race in the trace of ``job``, or warnings.

    It is a failure, too, when the trace cannot be checked. A warning names two blocks that write the same
    bytes to the same place.

    Args:
        toolchain: holds the programs.
        job: a run that ended well; its trace is read.
        kernel: what ran; it is run again to find the places of a race in its sources.
        limits: for that second run.
        auto_sync: whether the device compiler inserts synchronisation.
    """

    return race_of(toolchain, traced_run(toolchain, job, kernel, limits), auto_sync=auto_sync)


def traced_run(
    toolchain: Toolchain, job: KernelJob, kernel: KernelBuild, limits: ResourceLimits
) -> TracedRun:
    """Return what ``job`` left, with ``kernel`` to run again within ``limits``."""

    def run_again(lines: str) -> str:
        return job.execute_again(toolchain.run_program, limits, lines).stdout.decode("utf-8", "replace")

    return TracedRun(job.trace, job.tensor_ranges, kernel.libraries, own_place, run_again)


def race_of(toolchain: Toolchain, run: TracedRun, *, auto_sync: bool) -> Failure | tuple[Diagnostic, ...]:
    """Return what ``find_race`` does, for any run."""
    with MemoryFile.holding("tensor_ranges", run.tensor_ranges) as ranges:
        answer = read_trace(
            toolchain.races_program,
            run.trace,
            (ranges, "on" if auto_sync else "off"),
            phase=Phase.RUN_KERNEL,
            verb="checked for races",
            timeout_s=RACES_TIMEOUT_S,
        )
    if isinstance(answer, Failure):
        return answer
    if answer["race"] is not None:
        return Failure(Status.RUNTIME_FAULT, (_described(run, answer["race"]),))
    return () if answer["rewritten"] is None else (_described(run, answer["rewritten"]),)


def unwritten_read_of(toolchain: Toolchain, run: TracedRun) -> tuple[Diagnostic, ...]:
    """Name the first instruction that reads bytes of the unified buffer that nothing wrote, if any does."""
    answer = read_trace(
        toolchain.races_program,
        run.trace,
        ("", "unwritten"),
        phase=Phase.RUN_KERNEL,
        verb="checked for reads of what was never written",
        timeout_s=RACES_TIMEOUT_S,
    )
    read = None if isinstance(answer, Failure) else answer["read"]
    if read is None:
        return ()
    (access,) = _located(run, [_access(read["side"], read["cubes"], read["vectors"])])
    message = (
        f"reads unified buffer bytes [{read['begin']}, {read['end']}), half of which or more no instruction "
        "wrote before: is a copy or a computation missing, or its length too short?"
    )
    return (
        Diagnostic(
            phase=Phase.RUN_KERNEL,
            message=message,
            call=access.call,
            file=access.file,
            line=access.line,
            block_idx=access.block,
        ),
    )


def _described(run: TracedRun, race: dict[str, Any]) -> Diagnostic:
    accesses = [_access(side, race["cubes"], race["vectors"]) for side in (race["first"], race["second"])]
    first, second = _located(run, accesses)
    if race["space"] == _REGISTERS:
        read_by = _REGISTER_READS[race["begin"] // _REGISTER_BYTES]
        second = replace(second, call=read_by)
        bytes_of, them, kind = f"the register that {read_by} reads", "it", "register"
    else:
        bytes_of = _bytes_of(race, run.tensor_ranges)
        them, kind = "them", race["reason"]
    both = f"{first.described(them)}, {second.described(them)}"
    if race["reason"] == "same bytes":
        message = (
            f"two blocks write {bytes_of}, in no fixed order: {both} again. Both write the same values, so "
            "the result does not depend on the order; if that is not meant, let them write different bytes"
        )
    else:
        message = f"race on {bytes_of}: {both}, and {_reason(first, second, kind)}"
    return Diagnostic(
        phase=Phase.RUN_KERNEL,
        message=message,
        call=second.call,
        file=second.file,
        line=second.line,
        block_idx=second.block,
    )


def _bytes_of(race: dict[str, Any], tensor_ranges: str) -> str:
    """Name the bytes of a race: in global memory by their tensor, if it is an input or an output."""
    begin, end, memory = race["begin"], race["end"], _MEMORIES[race["space"]]
    if race["space"] == _GLOBAL:
        rows = [row.split(" ", 3) for row in tensor_ranges.splitlines()]
        names = [name for *_, name in rows]
        for number, (_, address, size_bytes, name) in enumerate(rows):
            offset = begin - int(address)
            if 0 <= offset < int(size_bytes):
                item = f"[{names[:number].count(name)}]" if names.count(name) > 1 else ""
                return f"{memory}, bytes [{offset}, {offset + end - begin}) of {name}{item}"
    return f"{memory} bytes [{begin}, {end})"


def _access(side: dict[str, Any], cubes: int, vectors: int) -> _Access:
    group, position = divmod(side["block"], cubes + vectors)
    kind = "cube" if side["cube"] else "vector"
    return _Access(
        trace=side["block"],
        block=group if side["cube"] else group * vectors + position - cubes,
        core=kind if cubes > 0 and vectors > 0 else "",
        ordinal=side["ordinal"],
        call=call_name(side["call"]),
        pipe=side["pipe"],
        writes=side["writes"],
    )


def _located(run: TracedRun, accesses: list[_Access]) -> list[_Access]:
    """Run the kernel once more and return the accesses with their places in its sources."""
    keys = {f"{access.trace} {access.ordinal}" for access in accesses}
    wanted = "".join(f"locate {key}\n" for key in sorted(keys))
    told: dict[str, tuple[CoreKind, str]] = {}
    for row in run.run_again(wanted).splitlines():
        fields = row.split("\t")
        if len(fields) == 5 and fields[0] == "located" and fields[4] in keys - told.keys():
            kind = CoreKind.CUBE if fields[2].startswith("cube") else CoreKind.VECTOR
            told[fields[4]] = kind, fields[3]
    places = places_by_frames(told.values(), run.libraries, run.place_of)
    located = []
    for access in accesses:
        frames = told.get(f"{access.trace} {access.ordinal}")
        file, line = places.get(frames, (None, None)) if frames else (None, None)
        located.append(replace(access, file=file, line=line))
    return located


def _reason(first: _Access, second: _Access, kind: str) -> str:
    return _REASONS.get(kind) or f"nothing orders the two: {_remedy(first, second)}"


def _remedy(first: _Access, second: _Access) -> str:
    if first.trace != second.trace:
        flag = "" if first.pipe == "S" else f" or CrossCoreSetFlag by PIPE_{first.pipe} and CrossCoreWaitFlag"
        sync = f"call SyncAll{flag} between them"
        if first.writes and second.writes:
            return f"let the blocks write different bytes, or {sync} if both writes are meant"
        return f"{sync}, or let the blocks touch different bytes"
    if first.pipe == second.pipe:
        return f"call PipeBarrier<PIPE_{first.pipe}>() between them"
    event = f"{first.pipe}_{second.pipe}"
    return (
        "pass the buffer through a queue and use none of its tensors after FreeTensor, or "
        f"SetFlag and WaitFlag<HardEvent::{event}> between them"
    )
