"""Runs of programs that launch kernels themselves (``.asc`` files), in a limited process.

The program's main function runs as it is; its acl calls and launches work on the simulated chip. Each launch
leaves a trace, which is priced in this, the trusted process.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase
from ascend_gym.core.status import Status
from npu_daemon.profiling.asc_build import AscProgram, ProgramBuild, own_files
from npu_daemon.sandbox import Limits, ProcessOutcome, run_limited
from npu_daemon.simulator.chips import Chip
from npu_daemon.simulator.task_type import CoreKind
from npu_daemon.simulator.toolchain import Toolchain

_JOB_KEYWORDS = {CoreKind.VECTOR: "kernel", CoreKind.CUBE: "cube_kernel"}
_MEMORY_BYTES = 6 * 2**30
_TRACE_BYTES = 2**30
_RECORD_LIMIT = 40_000_000
_REPORTED_FAULT_EXIT = 3
_CANNOT_START_EXIT = 125
_REPORT_STATUS = {
    "runtime_fault": Status.RUNTIME_FAULT,
    "unsupported": Status.UNSUPPORTED,
    "instruction_limit": Status.TIMEOUT,
    "timeout": Status.TIMEOUT,
}


@dataclass(frozen=True)
class TracedLaunch:
    """One launch of a run: ``index`` counts from 0 in program order."""

    index: int
    kernel: str
    block_dim: int
    trace: Path


@dataclass(frozen=True)
class ProgramRun:
    """How a program ended that was not stopped by a fault.

    Attributes:
        launches: in program order.
        exit_status: what main returned.
        stdout: what it printed.
        stderr: likewise, with the complaints of acl calls.
        seconds: wall seconds of the run.
    """

    launches: tuple[TracedLaunch, ...]
    exit_status: int
    stdout: str
    stderr: str
    seconds: float


def run_program(
    program: AscProgram,
    build: ProgramBuild,
    folder: Path,
    toolchain: Toolchain,
    chip: Chip,
    timeout_s: float,
    work_dir: Path | None = None,
) -> ProgramRun | Failure:
    """Run a built program in a limited process.

    Args:
        program: what to run.
        build: made by ``build_program``.
        folder: an existing folder for job and traces.
        toolchain: holds the programs of the simulator.
        chip: gives core count and memory sizes.
        timeout_s: CPU seconds that the program may take.
        work_dir: where it finds and writes its data files; by default ``folder``.
    """
    for name in ("input", "output"):  # where the samples of asc-devkit look for their data
        (folder / name).mkdir(exist_ok=True)
    job = folder / "job"
    job.write_text(_job_text(program, build, folder, chip, timeout_s), encoding="utf-8")
    limits = Limits(
        wall_s=3.0 * timeout_s + 5.0,  # the program itself watches its CPU time
        cpu_s=timeout_s + 2.0,
        memory_bytes=_MEMORY_BYTES,
        file_bytes=_TRACE_BYTES,
    )
    command = [str(toolchain.launcher_program), str(job), *program.arguments]
    outcome = run_limited(command, cwd=work_dir or folder, limits=limits)
    failure = _diagnosed(outcome, build, program, timeout_s)
    if failure is not None:
        return failure
    return ProgramRun(
        _listed_launches(folder),
        outcome.returncode or 0,
        outcome.stdout.decode("utf-8", "replace"),
        outcome.stderr.decode("utf-8", "replace"),
        outcome.seconds,
    )


def _job_text(program: AscProgram, build: ProgramBuild, folder: Path, chip: Chip, timeout_s: float) -> str:
    lines = [
        *(f"{_JOB_KEYWORDS[kind]} {library}" for kind, library in build.libraries.items()),
        f"task_type {build.expected_type.value}",
        f"soc_version {chip.geometry['soc_version'].value}",
        f"trace {folder / 'trace'}",
        *chip.core_lines(),
        f"record_limit {_RECORD_LIMIT}",
        f"time_limit_ms {int(timeout_s * 1000)}",
        f"price_only {int(program.price_only)}",
    ]
    return "".join(f"{line}\n" for line in lines)


def _listed_launches(folder: Path) -> tuple[TracedLaunch, ...]:
    listing = folder / "trace.launches"
    if not listing.exists():
        return ()
    launches = []
    for line in listing.read_text(encoding="utf-8").splitlines():
        index, block_dim, kernel = line.split(maxsplit=2)
        launches.append(TracedLaunch(int(index), kernel, int(block_dim), folder / f"trace.{index}"))
    return tuple(launches)


def _diagnosed(
    outcome: ProcessOutcome, build: ProgramBuild, program: AscProgram, timeout_s: float
) -> Failure | None:
    """Return what stopped the program, or ``None`` when its main function returned."""
    if outcome.exceeded == "file":
        message = f"a file of the run outgrew {_TRACE_BYTES >> 20} MiB: make the problem smaller"
        return _failure(Status.RESOURCE_LIMIT, Phase.RUN_KERNEL, message, outcome.seconds)
    if outcome.timed_out:
        message = f"the program did not end within {timeout_s:g} s of CPU time"
        return _failure(Status.TIMEOUT, Phase.RUN_KERNEL, message, outcome.seconds)
    if outcome.exceeded is not None or outcome.returncode is None:
        how = f"exceeded its {outcome.exceeded} limit" if outcome.exceeded else f"signal {outcome.signal}"
        return _failure(Status.RESOURCE_LIMIT, Phase.RUN_KERNEL, f"the program ended: {how}", outcome.seconds)
    if outcome.returncode == _CANNOT_START_EXIT:
        message = f"the program cannot be started: {outcome.stderr.decode('utf-8', 'replace').strip()}"
        return _failure(Status.BUILD_ERROR, Phase.RUN_KERNEL, message, outcome.seconds)
    return _reported(outcome, build, program) if outcome.returncode == _REPORTED_FAULT_EXIT else None


def _reported(outcome: ProcessOutcome, build: ProgramBuild, program: AscProgram) -> Failure | None:
    """Decode the last line of a run that ended in a fault: kind, call, block, frames and message."""
    lines = outcome.stdout.decode("utf-8", "replace").splitlines()
    fields = lines[-1].split("\t") if lines else []
    if len(fields) != 5 or fields[0] not in _REPORT_STATUS:
        return None  # the program's own exit status
    kind, call, block, frames, message = fields
    *cube, index = block.split(" ")
    file, line = _source_of(frames, build.libraries.get(CoreKind.CUBE if cube else CoreKind.VECTOR), program)
    diagnostic = Diagnostic(
        phase=Phase.RUN_KERNEL,
        message=message,
        call=call,
        file=file,
        line=line,
        block_idx=int(index) if index.isdigit() else None,
    )
    return Failure(_REPORT_STATUS[kind], (diagnostic,), outcome.seconds)


def _source_of(frames: str, library: Path | None, program: AscProgram) -> tuple[str | None, int | None]:
    """Return file and line of the innermost frame in a file of the program's folder."""
    if not frames or library is None:
        return None, None
    command = ["addr2line", "-i", "-e", str(library), *(f"0x{frame}" for frame in frames.split(","))]
    listing = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    own = {path.name for path in own_files(program)}
    for row in listing.splitlines():
        path, _, line = row.partition(":")
        number = re.match(r"\d+", line)
        if Path(path).name in own and number:
            return Path(path).name, int(number[0])
    return None, None


def _failure(status: Status, phase: Phase, message: str, seconds: float = 0.0) -> Failure:
    return Failure(status, (Diagnostic(phase=phase, message=message),), seconds)
