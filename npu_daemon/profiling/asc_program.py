"""Runs of programs that launch kernels themselves (``.asc`` files), in a limited process.

The program's main function runs unchanged; its acl calls and launches work on the simulated chip. Each launch
writes a trace, which is priced in this, the trusted process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase
from ascend_gym.core.status import Status
from npu_daemon.profiling.asc_build import AscProgram, ProgramBuild, own_files
from npu_daemon.sandbox import ProcessOutcome, Reach, ResourceLimits, run_limited, wall_limit_s
from npu_daemon.simulator.chips import Chip
from npu_daemon.simulator.places import Place
from npu_daemon.simulator.races import TracedRun, race_of
from npu_daemon.simulator.run_report import (
    REPORTED_FAULT_EXIT,
    library_lines,
    limit_lines,
    reported_failure,
)
from npu_daemon.simulator.toolchain import Toolchain

_MEMORY_BYTES = 6 * 2**30
_OUTPUT_BYTES = 64 * 2**20
_TRACE_BYTES = 2**30
_RECORD_LIMIT = 40_000_000
_CANNOT_START_EXIT = 125
NO_TENSORS = ""  # the program judges its outputs itself


@dataclass(frozen=True)
class TracedLaunch:
    """One launch of a run; ``index`` counts from 0 in program order."""

    index: int
    kernel: str
    block_dim: int
    trace: Path


@dataclass(frozen=True)
class ProgramRun:
    """Outcome of a program that no fault stopped.

    Attributes:
        launches: launches in program order.
        exit_status: return value of main.
        stdout: standard output.
        stderr: standard error, including the errors of acl calls.
        seconds: wall seconds of the run.
    """

    launches: tuple[TracedLaunch, ...]
    exit_status: int
    stdout: str
    stderr: str
    seconds: float


@dataclass(frozen=True)
class StoppedProgram(Failure):
    """Why a program was stopped, and its output until then."""

    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True)
class ProgramJob:
    """Everything that one run needs.

    Attributes:
        program: program.
        build: result of ``build_program``.
        folder: existing folder for job and traces.
        toolchain: programs of the simulator.
        chip: chip with its core count and memory sizes.
        timeout_s: limit in CPU seconds.
        work_dir: working folder with its data files; by default ``folder``, as for all confined programs.
    """

    program: AscProgram
    build: ProgramBuild
    folder: Path
    toolchain: Toolchain
    chip: Chip
    timeout_s: float
    work_dir: Path | None = None

    def outcome(self, further_lines: str = "") -> ProcessOutcome:
        """Run the program in a limited process, with additional lines in its job."""
        job = self.folder / "job"
        job.write_text(_job_text(self) + further_lines, encoding="utf-8")
        limits = ResourceLimits(
            wall_s=wall_limit_s(self.timeout_s),
            cpu_s=self.timeout_s + 2.0,
            memory_bytes=_MEMORY_BYTES,
            file_bytes=_TRACE_BYTES,
            output_bytes=_OUTPUT_BYTES,
        )
        command = [str(self.toolchain.launcher_program), str(job), *self.program.arguments]
        reach = (
            Reach((self.folder, self.toolchain.launcher_program.parent)) if self.program.confined else None
        )
        return run_limited(command, cwd=self.work_dir or self.folder, limits=limits, reach=reach)

    def place_of(self, rows: Iterable[str]) -> Place:
        """Return file and line of the innermost row in a file of the program's folder."""
        own = {path.name for path in own_files(self.program)}
        for row in rows:
            path, _, line = row.partition(":")
            number = re.match(r"\d+", line)
            if Path(path).name in own and number:
                return Path(path).name, int(number[0])
        return None, None


def run_program(job: ProgramJob) -> ProgramRun | StoppedProgram:
    """Run a built program in a limited process."""
    for name in ("input", "output"):  # where the samples of asc-devkit look for their data
        (job.folder / name).mkdir(exist_ok=True)
    outcome = job.outcome()
    failure = _diagnosed(outcome, job)
    stdout, stderr = _printed(outcome, reported=failure is not None)
    if failure is not None:
        return StoppedProgram(failure.status, failure.diagnostics, failure.seconds, stdout, stderr)
    launches = _listed_launches(job.folder)
    return ProgramRun(launches, outcome.returncode or 0, stdout, stderr, outcome.seconds)


def find_program_race(job: ProgramJob, launch: TracedLaunch) -> Failure | tuple[Diagnostic, ...]:
    """Return the first race of a launch with both places, or why its trace cannot be checked; else warnings.

    Launched kernels are by default compiled with automatic synchronisation (asc-devkit,
    docs/zh/api/SIMD-API, PipeBarrier). To find the places, the program runs once more.
    """

    def run_again(lines: str) -> str:
        outcome = job.outcome(f"{lines}located_launch {launch.index}\n")
        return outcome.stdout.decode("utf-8", "replace")

    run = TracedRun(launch.trace, NO_TENSORS, job.build.libraries, job.place_of, run_again)
    return race_of(job.toolchain, run, auto_sync=True)


def _job_text(job: ProgramJob) -> str:
    lines = [
        *library_lines(job.build.libraries, job.build.expected_type.value),
        f"soc_version {job.chip.geometry['soc_version'].value}",
        f"trace {job.folder / 'trace'}",
        *job.chip.core_lines(),
        f"record_limit {_RECORD_LIMIT}",
        *limit_lines(job.timeout_s),
        f"price_only {int(job.program.price_only)}",
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


def _diagnosed(outcome: ProcessOutcome, job: ProgramJob) -> Failure | None:
    """Return what stopped the program, or ``None`` when its main function returned."""
    if outcome.exceeded == "file":
        message = f"a file of the run outgrew {_TRACE_BYTES >> 20} MiB: make the problem smaller"
        return Failure.of(Status.RESOURCE_LIMIT, Phase.RUN_KERNEL, message, outcome.seconds)
    if outcome.timed_out:
        message = f"the program did not end within {job.timeout_s:g} s of CPU time"
        return Failure.of(Status.TIMEOUT, Phase.RUN_KERNEL, message, outcome.seconds)
    if outcome.exceeded is not None or outcome.returncode is None:
        how = f"exceeded its {outcome.exceeded} limit" if outcome.exceeded else f"signal {outcome.signal}"
        return Failure.of(
            Status.RESOURCE_LIMIT, Phase.RUN_KERNEL, f"the program ended: {how}", outcome.seconds
        )
    if outcome.returncode == _CANNOT_START_EXIT:
        message = f"the program cannot be started: {outcome.stderr.decode('utf-8', 'replace').strip()}"
        return Failure.of(Status.BUILD_ERROR, Phase.RUN_KERNEL, message, outcome.seconds)
    if outcome.returncode != REPORTED_FAULT_EXIT:
        return None  # without a report, that is the program's own exit status
    return reported_failure(outcome, job.build.libraries, job.place_of, outcome.seconds)


def _printed(outcome: ProcessOutcome, *, reported: bool) -> tuple[str, str]:
    """Return standard output without the report of a fault, and standard error."""
    stdout, stderr = (stream.decode("utf-8", "replace") for stream in (outcome.stdout, outcome.stderr))
    if reported and outcome.returncode == REPORTED_FAULT_EXIT:
        stdout = "".join(stdout.splitlines(keepends=True)[:-1])
    if len(outcome.stdout) >= _OUTPUT_BYTES:
        stderr += f"what the program printed beyond {_OUTPUT_BYTES >> 20} MiB was dropped\n"
    return stdout, stderr
