"""Profiles one case of an operator, or all launches of a program, on the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.protocols import Failure, RunOutput
from ascend_gym.core.records import (
    Candidate,
    Case,
    Convention,
    Diagnostic,
    MeasureProtocol,
    OpSpec,
    Phase,
)
from ascend_gym.core.status import Status
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.case_data import CaseDataCache
from npu_daemon.harness import harness_identity
from npu_daemon.profiling.asc_build import AscProgram, build_program
from npu_daemon.profiling.asc_program import (
    NO_TENSORS,
    ProgramJob,
    ProgramRun,
    StoppedProgram,
    TracedLaunch,
    find_program_race,
    run_program,
)
from npu_daemon.profiling.launch_profile import LaunchProfile
from npu_daemon.simulator.chips import Chip, load_chip
from npu_daemon.simulator.pricing import TimelineRequest, price_trace
from npu_daemon.simulator.stalls import MAX_EVENTS


@dataclass(frozen=True)
class ProfiledProgram:
    """A program with its priced launches.

    Attributes:
        run: outcome of the program.
        launches: launches in program order.
        unchecked: why launches could not be checked for races, if any could not.
    """

    run: ProgramRun
    launches: tuple[LaunchProfile, ...]
    unchecked: tuple[str, ...] = ()


class Profiler:
    """Runs and prices, keeping timelines.

    Args:
        backend: builds, runs and prices.
        chip: name of the chip.
        folder: existing folder for the files of runs; the caller removes it.
        max_events: maximum events to keep per launch; ``None`` keeps no timeline.
        timeout_s: limit of a run in CPU seconds.
        convention: what launches find in the caches; those of a program find in L2 what earlier ones left.
    """

    def __init__(
        self,
        backend: SimulatorBackend,
        chip: str,
        folder: Path,
        max_events: int | None,
        timeout_s: float,
        *,
        convention: Convention = Convention.L2_COLD,
    ) -> None:
        self._backend = backend
        self._chip: Chip = load_chip(chip).under(convention)
        self._folder = folder
        self._max_events = max_events
        self._timeout_s = timeout_s

    def profile_operator(
        self, spec: OpSpec, candidate: Candidate, case: Case, cache_dir: Path
    ) -> LaunchProfile | Failure:
        """Run a candidate on one case, check its outputs and price it.

        Args:
            spec: operator.
            candidate: its sources, original or changed.
            case: one of its cases.
            cache_dir: folder for inputs and expected outputs.
        """
        protocol = MeasureProtocol(chip=self._chip.name, run_timeout_s=self._timeout_s)
        oracle = oracle_for(spec)
        data = CaseDataCache(cache_dir / "case_data", harness_identity()).obtain(
            spec, oracle, case, protocol.input_seed
        )
        built = self._backend.build(spec, case, candidate, protocol)
        run = (
            built
            if isinstance(built, Failure)
            else self._backend.run(built, case, data.input_files, protocol)
        )
        if isinstance(run, Failure):
            return run
        try:
            verdict = oracle.judge(case, run.outputs, data.expected)
            if not verdict.correct:
                return Failure(
                    Status.INCORRECT, (Diagnostic(phase=Phase.VERIFY, message=verdict.message),), run.seconds
                )
            return self._operator_launch(spec, run, protocol)
        finally:
            self._backend.cleanup(run)

    def _operator_launch(
        self, spec: OpSpec, run: RunOutput, protocol: MeasureProtocol
    ) -> LaunchProfile | Failure:
        asked = self._timeline(0)
        timeline = asked or TimelineRequest(self._folder / "timeline.0", MAX_EVENTS)
        price = self._backend.price(run, self._chip, timeline)
        if isinstance(price, Failure):
            return price
        block_dim: int = run.handle.tiling.block_dim
        path = asked.path if asked else None
        stalls = self._backend.stalls(run, price, timeline.path, protocol)
        taken_bytes = run.handle.finished.ub_taken_bytes
        return LaunchProfile(
            0, spec.name, block_dim, self._chip, price, path, run.diagnostics, stalls, taken_bytes
        )

    def profile_program(self, program: AscProgram, data_dir: Path | None = None) -> ProfiledProgram | Failure:
        """Build and run a program, check its launches for races, and price them in order.

        Args:
            program: program. With ``price_only`` nothing is checked.
            data_dir: working folder with its data files; by default a new folder.

        Returns:
            The launches, or what stopped the program (``StoppedProgram`` once it ran).

        Raises:
            MisuseError: the program has no main function, no launch, or one that cannot be parsed.
        """
        toolchain = self._backend.toolchain
        build = build_program(program, self._folder, toolchain, self._timeout_s)
        if isinstance(build, Failure):
            return build
        job = ProgramJob(program, build, self._folder, toolchain, self._chip, self._timeout_s, data_dir)
        run = run_program(job)
        if isinstance(run, Failure):
            return run
        checked = _checked(job, run)
        if isinstance(checked, Failure):
            return _stopped(checked, run)
        warnings, unchecked = checked
        priced = self._priced(run.launches, warnings)
        return (
            _stopped(priced, run) if isinstance(priced, Failure) else ProfiledProgram(run, priced, unchecked)
        )

    def _priced(
        self, launches: tuple[TracedLaunch, ...], warnings: Mapping[int, tuple[Diagnostic, ...]]
    ) -> tuple[LaunchProfile, ...] | Failure:
        """Price the launches in order: each finds in L2 what those before it left there.

        One right after a launch of the same kernel on as many blocks finds that one's code in the
        instruction caches, also that of branches which that one did not take.
        """
        cache = self._folder / "l2"
        profiles: list[LaunchProfile] = []
        for launch in launches:
            repeated = False
            if profiles:
                last = profiles[-1]
                repeated = last.kernel == launch.kernel and last.block_dim >= launch.block_dim
            timeline = self._timeline(launch.index)
            price = price_trace(
                self._backend.toolchain,
                launch.trace,
                self._chip.with_code_loaded() if repeated else self._chip,
                NO_TENSORS,
                timeline,
                self._timeout_s,
                cache,
            )
            launch.trace.unlink()
            if isinstance(price, Failure):
                return price
            path = timeline.path if timeline else None
            profiles.append(
                LaunchProfile(
                    launch.index,
                    launch.kernel,
                    launch.block_dim,
                    self._chip,
                    price,
                    path,
                    warnings.get(launch.index, ()),
                )
            )
        return tuple(profiles)

    def _timeline(self, index: int) -> TimelineRequest | None:
        if self._max_events is None:
            return None
        return TimelineRequest(self._folder / f"timeline.{index}", self._max_events)


def _stopped(failure: Failure, run: ProgramRun) -> StoppedProgram:
    return StoppedProgram(failure.status, failure.diagnostics, failure.seconds, run.stdout, run.stderr)


def _checked(
    job: ProgramJob, run: ProgramRun
) -> tuple[dict[int, tuple[Diagnostic, ...]], tuple[str, ...]] | Failure:
    """Return a race of a launch, or warnings by launch and a sentence for each unchecked launch."""
    warnings: dict[int, tuple[Diagnostic, ...]] = {}
    unchecked = []
    for launch in () if job.program.price_only else run.launches:
        found = find_program_race(job, launch)
        if not isinstance(found, Failure):
            warnings[launch.index] = found
        elif found.status is Status.RUNTIME_FAULT:
            return found
        else:
            unchecked.append(f"launch {launch.index} ({launch.kernel}): {found.diagnostics[0].message}")
    return warnings, tuple(unchecked)
