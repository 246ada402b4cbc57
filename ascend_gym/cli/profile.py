"""``ascend-gym profile``: time profile of an operator or of a program with launches."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ascend_gym.cli.options import (
    EXIT_BY_BLAME,
    EXIT_MISUSE,
    Chip,
    ConventionOption,
    Json,
    KernelFile,
    OpDir,
    TilingFile,
    case_of,
    console,
    note,
    source_text,
)
from ascend_gym.core.config import cache_root, usable_cache
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.option_groups import grouped
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Convention
from ascend_gym.core.status import rule_of
from ascend_gym.report.summary import to_json
from ascend_gym.suite.loader import load_operator

if TYPE_CHECKING:
    from npu_daemon.profiling.launch_profile import LaunchProfile
    from npu_daemon.profiling.profiler import Profiler

DEFAULT_MAX_EVENTS = 500_000
_Op = Annotated[str | None, typer.Argument(metavar="[OP]", help="Operator, such as gelu.")]
_CaseId = Annotated[str | None, typer.Option(metavar="ID", help="Case; by default the first.")]
_Program = Annotated[
    Path | None,
    typer.Option(
        exists=True, dir_okay=False, readable=True, help="Program with <<<>>> launches, instead of OP."
    ),
]
_Define = Annotated[
    list[str] | None, typer.Option(metavar="NAME[=VALUE]", help="Macro for --asc; repeatable.")
]
_IncludeDir = Annotated[
    list[Path] | None,
    typer.Option(
        "--include-dir", "-I", metavar="DIR", exists=True, file_okay=False,
        help="Folder with headers of --asc; repeatable.",
    ),
]  # fmt: skip
_Arg = Annotated[list[str] | None, typer.Option(help="Argument of the program's main; repeatable.")]
_DataDir = Annotated[
    Path | None,
    typer.Option(exists=True, file_okay=False, help="Working folder of the program, with its data files."),
]
_PriceOnly = Annotated[
    bool,
    typer.Option(
        "--price-only", help="Skip matrix products of --asc: same prices, faster, but wrong outputs."
    ),
]
_TraceFile = Annotated[
    Path | None, typer.Option(dir_okay=False, help="Write a Chrome/Perfetto trace to this file.")
]
_OutDir = Annotated[
    Path | None, typer.Option(file_okay=False, help="Write CSV files in msopprof's format to this folder.")
]
_MaxEvents = Annotated[int, typer.Option(min=1, help="Maximum events per launch in the trace.")]
_Timeout = Annotated[float, typer.Option(min=0.1, help="Limit of the run in CPU seconds.")]


@dataclass(frozen=True)
class _Outcome:
    """Launches, or why there are none, with the output of a program."""

    launches: tuple[LaunchProfile, ...]
    failure: Failure | None = None
    exit_status: int = 0
    stdout: str = ""
    stderr: str = ""
    unchecked: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Subject:
    """What to profile: an operator with its case and sources, or a program."""

    op: _Op = None
    op_dir: OpDir = None
    kernel_file: KernelFile = None
    tiling_file: TilingFile = None
    case: _CaseId = None
    asc: _Program = None
    define: _Define = None
    include_dir: _IncludeDir = None
    arg: _Arg = None
    data: _DataDir = None
    price_only: _PriceOnly = False


@dataclass(frozen=True)
class _Files:
    """What to write, and where."""

    trace: _TraceFile = None
    out: _OutDir = None
    max_events: _MaxEvents = DEFAULT_MAX_EVENTS


@grouped
def profile(
    subject: _Subject,
    files: _Files,
    chip: Chip = "910B2",
    timeout: _Timeout = 600.0,
    convention: ConventionOption = Convention.L2_COLD,
    as_json: Json = False,
) -> None:
    """Profile an operator, or a program that launches kernels: roofline, trace, CSV files."""
    from npu_daemon.backends.simulator import SimulatorBackend
    from npu_daemon.profiling.profiler import Profiler

    with tempfile.TemporaryDirectory(prefix="ascend-gym-profile-") as folder:
        backend = SimulatorBackend(usable_cache(cache_root()), chip, note)
        events = files.max_events if files.trace is not None else None
        profiler = Profiler(backend, chip, Path(folder), events, timeout, convention=convention)
        outcome = _profiled(profiler, subject)
        if outcome.launches:
            _write_files(outcome.launches, files.trace, files.out)
        _show(outcome, as_json)
    raise typer.Exit(_exit_status(outcome))


def _exit_status(outcome: _Outcome) -> int:
    """Return 0 if a launch was profiled; otherwise the job was not done, whoever is to blame."""
    if outcome.launches:
        return 0
    if outcome.failure is None:
        return EXIT_MISUSE
    return EXIT_BY_BLAME.get(rule_of(outcome.failure.status).blame, EXIT_MISUSE)


def _profiled(profiler: Profiler, subject: _Subject) -> _Outcome:
    if (subject.op is None) == (subject.asc is None):
        raise MisuseError("expected either an operator or --asc FILE")
    if subject.asc is not None:
        return _profiled_program(profiler, subject.asc, subject)
    further = (subject.define, subject.include_dir, subject.arg, subject.data, subject.price_only)
    if any(further):
        raise MisuseError("--define, --include-dir, --arg, --data and --price-only belong to --asc")
    return _profiled_operator(profiler, subject.op or "", subject)


def _profiled_operator(profiler: Profiler, op: str, subject: _Subject) -> _Outcome:
    spec = load_operator(op, op_dir=subject.op_dir)
    tiling, kernel = source_text(subject.tiling_file), source_text(subject.kernel_file)
    candidate = spec.baseline.rewritten(tiling=tiling, kernel=kernel)
    case = spec.cases[0] if subject.case is None else case_of(spec, subject.case)
    result = profiler.profile_operator(spec, candidate, case, cache_root())
    return _Outcome((), result) if isinstance(result, Failure) else _Outcome((result,))


def _profiled_program(profiler: Profiler, source: Path, subject: _Subject) -> _Outcome:
    from npu_daemon.profiling.asc_build import AscProgram
    from npu_daemon.profiling.asc_program import StoppedProgram

    if subject.op_dir or subject.kernel_file or subject.tiling_file or subject.case:
        raise MisuseError("--op-dir, --kernel-file, --tiling-file and --case belong to an operator")
    program = AscProgram(
        source,
        tuple(subject.define or ()),
        tuple(subject.arg or ()),
        subject.price_only,
        include_dirs=tuple(subject.include_dir or ()),
    )
    result = profiler.profile_program(program, subject.data)
    if isinstance(result, StoppedProgram):
        return _Outcome((), result, 0, result.stdout, result.stderr)
    if isinstance(result, Failure):
        return _Outcome((), result)
    run = result.run
    return _Outcome(result.launches, None, run.exit_status, run.stdout, run.stderr, result.unchecked)


def _write_files(launches: tuple[LaunchProfile, ...], trace: Path | None, out: Path | None) -> None:
    from npu_daemon.profiling.csv_files import write_chrome_trace, write_csv_files

    if trace is not None:
        left_out = write_chrome_trace(launches, trace)
        note(f"trace: {trace}" + (f" ({left_out})" if left_out else ""))
    if out is not None:
        files = write_csv_files(launches, out)
        note(f"{len(files)} CSV files in {out}")


def _show(outcome: _Outcome, as_json: bool) -> None:
    from npu_daemon.profiling.summary import launch_summary, print_launch

    if as_json:
        document = {
            "status": outcome.failure.status.value if outcome.failure else "ok",
            "diagnostics": [str(one) for one in outcome.failure.diagnostics] if outcome.failure else [],
            "launches": [launch_summary(launch) for launch in outcome.launches],
            "exit_status": outcome.exit_status,
            "stdout": outcome.stdout,
            "stderr": outcome.stderr,
            "unchecked_for_races": outcome.unchecked,
        }
        typer.echo(to_json(document))
        return
    for text in (outcome.stdout, outcome.stderr):
        if text.strip():
            note(text.rstrip("\n"))
    if outcome.failure is not None:
        for diagnostic in outcome.failure.diagnostics:
            note(f"{outcome.failure.status.value}: {diagnostic}")
    elif not outcome.launches:
        note("the program launched no kernel")
    for reason in outcome.unchecked:
        note(f"not checked for races: {reason}")
    if outcome.exit_status:
        note(f"the program's main returned {outcome.exit_status}")
    for launch in outcome.launches:
        print_launch(console(), launch)
