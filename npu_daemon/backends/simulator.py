"""The default backend: compiles candidates natively, executes them and prices them in cycles of a chip."""

from __future__ import annotations

import platform
import re
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Built, Failure, RunOutput, layout_of
from ascend_gym.core.records import (
    Candidate,
    Case,
    CaseResult,
    DeviceInfo,
    Diagnostic,
    Launch,
    MeasureProtocol,
    OpSpec,
    Phase,
    Stall,
    TargetSheet,
)
from ascend_gym.core.remove_tree import remove_tree
from ascend_gym.core.status import Status
from ascend_gym.suite.inputs import Array
from npu_daemon.backends.run_folder import run_in_folder
from npu_daemon.cache_folder import BUILDS_FOLDER
from npu_daemon.floor import floor_us
from npu_daemon.processors import WhenIdle
from npu_daemon.sandbox import RLIMITS, sandbox_level
from npu_daemon.simulator.build_cache import BuildCache, HostBuild, KernelBuild, TilingKey
from npu_daemon.simulator.chips import Chip, chip_names, load_chip, shipped_digests
from npu_daemon.simulator.host_side import TilingOutcome
from npu_daemon.simulator.kernel_run import KernelJob, diagnose_run, read_outputs, run_limits, write_job
from npu_daemon.simulator.places import own_place
from npu_daemon.simulator.pricing import TimelineRequest, price_trace
from npu_daemon.simulator.profile import core_times_of, profile_of, samples_us
from npu_daemon.simulator.races import find_race, traced_run, unwritten_read_of
from npu_daemon.simulator.run_report import reported_ub_taken_bytes, reported_warnings
from npu_daemon.simulator.self_check import simulator_trouble
from npu_daemon.simulator.stalls import MAX_EVENTS, stalls_of
from npu_daemon.simulator.target import target_sheet
from npu_daemon.simulator.task_type import core_kinds, kernel_task_types
from npu_daemon.simulator.tiling_run import tiling_alone, tiling_of
from npu_daemon.simulator.toolchain import Toolchain, obtain_toolchain
from npu_daemon.simulator.unset_fields import unset_fields
from npu_daemon.simulator.untouched import holds_nan, never_written

_AHEAD_BYTES = 2**20
"""Size of the largest trace that is priced before its run is accepted: half a second."""

_Prices: TypeAlias = Mapping[str, WhenIdle[dict[str, Any] | Failure]]
_COLLECTIVE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"](?:lib|tiling)/hccl/', re.MULTILINE)


@dataclass(frozen=True)
class _Build:
    """A built candidate, with the operator that it implements.

    Attributes:
        spec: of the operator.
        candidate: that was built.
        kernel: of it.
        tiling: what its tiling program, which ran beside the build of the kernel, decides in the first run;
            ``None`` if that depends on values.
    """

    spec: OpSpec
    candidate: Candidate
    kernel: KernelBuild
    tiling: TilingOutcome | Failure | None


@dataclass(frozen=True)
class _Finished:
    """What a successful run leaves.

    Attributes:
        outputs: arrays of each output.
        seconds: wall time.
        ub_taken_bytes: how much of UB its buffers take, where any vector core initialised one.
        warnings: of runs that are checked for races.
        ahead: prices that are computed when a processor is idle, by digest of the chip.
    """

    outputs: tuple[tuple[Array, ...], ...]
    seconds: float
    ub_taken_bytes: int | None
    warnings: tuple[Diagnostic, ...] = ()
    ahead: _Prices = field(default_factory=dict)


@dataclass(frozen=True)
class _Run:
    """State of a finished run.

    Attributes:
        spec: of the operator.
        candidate: that ran.
        kernel: of it, built.
        job: the run.
        tiling: output of the tiling program.
        read_by_tiling: inputs whose values the tiling program may read.
        finished: what it left.
    """

    spec: OpSpec
    candidate: Candidate
    kernel: KernelBuild
    job: KernelJob
    tiling: TilingOutcome
    read_by_tiling: frozenset[str]
    finished: _Finished


class SimulatorBackend:
    """Runs Ascend C without a device.

    Args:
        cache_dir: folder for toolchains and builds.
        chip: default chip, for ``describe``; each request names its own in its protocol.
        announce: called with a message before slow work; by default written to standard error.

    Attributes:
        toolchain: programs and precompiled headers of this host.

    Raises:
        InfrastructureError: the compiler is missing or the simulator does not compile.
        MisuseError: the chip does not exist.
    """

    measures_on_device = False

    def __init__(
        self,
        cache_dir: Path,
        chip: str = "910B2",
        announce: Callable[[str], None] | None = None,
    ) -> None:
        self._chip = load_chip(chip)
        if sandbox_level() == RLIMITS:
            (announce or _tell)(
                "warning: candidates are not confined on this host (no Landlock, no bubblewrap): "
                "they can read and write what this user can; evaluate only sources that you trust"
            )
        self.toolchain = obtain_toolchain(cache_dir, announce or _tell)
        self._digest = digest_of("simulator", self.toolchain.release, shipped_digests())
        self._builds = BuildCache(cache_dir / BUILDS_FOLDER, self.toolchain)

    def describe(self) -> DeviceInfo:
        """Return the device with which this backend measures."""
        return DeviceInfo(
            backend="simulator",
            chip=self._chip.name,
            toolchain_digest=self._digest,
            sandbox=sandbox_level(),
            host=platform.node(),
        )

    def chips(self) -> tuple[str, ...]:
        """Return the chips that have a description."""
        return tuple(chip_names())

    def target(self, chip: str) -> TargetSheet:
        """Return the facts about a chip."""
        return target_sheet(chip, starts_with_empty_l2=True)

    def supports(self, spec: OpSpec, protocol: MeasureProtocol) -> Diagnostic | None:
        """Return the reason why the operator cannot be evaluated, or ``None``."""
        try:
            load_chip(protocol.chip)
        except MisuseError as error:
            return Diagnostic(phase=Phase.REQUEST, message=f"the simulator: {error}")
        files = (*spec.baseline.host.files, *spec.baseline.kernel.files)
        if any(includes_collectives(file.text) for file in files):
            message = "collective communication (hccl) is not simulated: a launch has one device to itself"
            return Diagnostic(phase=Phase.REQUEST, message=message)
        return None

    def build(
        self,
        spec: OpSpec,
        case: Case,
        candidate: Candidate,
        protocol: MeasureProtocol,
        on_launch: Callable[[str], None] = lambda _: None,
    ) -> Built | Failure:
        """Build host and kernel code, each cached separately; see ``Backend.build``.

        The tiling program of the first run needs no kernel: it runs while that is compiled.

        Args:
            spec: operator.
            case: shapes, types and attributes.
            candidate: tiling and kernel sources.
            protocol: time limits.
            on_launch: see ``Backend.build``.
        """
        chip = load_chip(protocol.chip)
        kinds = core_kinds(kernel_task_types(candidate.kernel))
        decided: list[Future[TilingOutcome | Failure | None]] = []
        with ThreadPoolExecutor(max_workers=1) as beside:

            def tiling_tells(host: HostBuild) -> TilingOutcome | Failure | None:
                tiling = tiling_alone(host, kinds, case, chip, self.toolchain)
                if isinstance(tiling, TilingOutcome):
                    on_launch(tiling.digest)
                return tiling

            def decide(host: HostBuild) -> TilingKey:
                decided.append(beside.submit(tiling_tells, host))
                return lambda: _key_of(decided[0].result())

            kernel = self._builds.candidate(spec, case, candidate, chip, protocol, decide)
        if isinstance(kernel, Failure):
            return kernel
        build = _Build(spec, candidate, kernel, decided[0].result())
        return Built(build, kernel.seconds + kernel.host.seconds)

    def run(
        self,
        built: Built,
        case: Case,
        inputs: Sequence[Sequence[Path]],
        protocol: MeasureProtocol,
        rerun: int = 0,
    ) -> RunOutput | Failure:
        """Run the kernel on every block; only rerun 0 is checked for races.

        The tiling program runs before it only if it reads values.

        Args:
            built: build to execute.
            case: case that it was built for.
            inputs: raw little-endian files, one per tensor, in parameter order.
            protocol: limits.
            rerun: number of the rerun; see ``Backend.run``.
        """
        return run_in_folder(
            "ascend-gym-run-",
            lambda work_dir: self._run_in(work_dir, built.handle, case, inputs, protocol, rerun),
        )

    def _run_in(
        self,
        work_dir: Path,
        build: _Build,
        case: Case,
        inputs: Sequence[Sequence[Path]],
        protocol: MeasureProtocol,
        rerun: int,
    ) -> RunOutput | Failure:
        chip = load_chip(protocol.chip)
        host, kinds = build.kernel.host, build.kernel.libraries.keys()
        # What was decided once counts for all runs: a tiling program that decides by chance decides once.
        tiling = build.tiling or tiling_of(host, kinds, case, chip, self.toolchain, work_dir, inputs)
        if isinstance(tiling, Failure):
            return tiling
        job = write_job(work_dir, build.kernel, case, inputs, tiling, chip, protocol, layout_of(rerun))
        finished = None
        try:
            finished = self._executed(job, build, case, protocol, searched=rerun == 0)
        finally:
            if not isinstance(finished, _Finished):
                job.close()
        seconds = tiling.seconds + finished.seconds
        if isinstance(finished, Failure):
            said = (*unset_fields(tiling, build.candidate), *finished.diagnostics)
            return Failure(finished.status, said, seconds)
        read_by_tiling = host.definition.value_dependent_inputs()
        handle = _Run(build.spec, build.candidate, build.kernel, job, tiling, read_by_tiling, finished)
        explain = partial(_explained, case, self.toolchain, handle, protocol)
        return RunOutput(finished.outputs, handle, seconds, finished.warnings, explain)

    def _executed(
        self, job: KernelJob, build: _Build, case: Case, protocol: MeasureProtocol, *, searched: bool
    ) -> _Finished | Failure:
        """Return what a successful run leaves.

        Only runs that are checked for races have warnings, and they must have no race.
        """
        limits = run_limits(protocol)
        outcome = job.execute(self.toolchain.run_program, limits)
        failure = diagnose_run(outcome, build.kernel, protocol, outcome.seconds)
        if failure is not None:
            return failure
        if job.trace.size_bytes == 0:
            return _ended_early(outcome.seconds)
        taken_bytes = reported_ub_taken_bytes(outcome)
        if not searched:
            return _Finished(read_outputs(job, case), outcome.seconds, taken_bytes)
        ahead = _prices_ahead(self.toolchain, job, protocol)
        found = find_race(self.toolchain, job, build.kernel, limits, auto_sync=build.spec.auto_sync)
        rtol = min(
            (case.tolerance[each.dtype].rtol for each in case.outputs if each.dtype in case.tolerance),
            default=1.0,
        )
        warnings = reported_warnings(outcome, build.kernel.libraries, own_place, rtol)
        if isinstance(found, Failure):  # it may come of what is warned of, as of an operand past its buffer
            said = (*found.diagnostics, *warnings)
            return Failure(found.status, said, outcome.seconds + found.seconds)
        return _Finished(read_outputs(job, case), outcome.seconds, taken_bytes, (*warnings, *found), ahead)

    def measure(self, run: RunOutput, case: Case, protocol: MeasureProtocol) -> CaseResult | Failure:
        """Price the trace of a run whose outputs were accepted as correct."""
        handle: _Run = run.handle
        chip = load_chip(protocol.chip).under(protocol.convention)
        timeline = TimelineRequest(handle.job.folder / "timeline", MAX_EVENTS) if protocol.stalls else None
        price = self.price(run, chip, timeline) if timeline else _price_of(self.toolchain, handle, chip)
        if isinstance(price, Failure):
            return price
        if price["unwritten"]:
            return _unwritten(price["unwritten"])
        unread = {name: count for name, count in price["unread"].items() if name not in handle.read_by_tiling}
        if unread and handle.spec.reads_all_inputs:
            return _unread(unread)
        profile = profile_of(price, handle.tiling.block_dim, chip)
        samples = samples_us(profile.task_duration_us, handle.candidate, case, protocol)
        return CaseResult(
            case_id=case.case_id,
            status=Status.OK,
            samples_us=samples,
            launch=Launch(
                block_dim=handle.tiling.block_dim,
                tiling_key=handle.tiling.tiling_key,
                workspace_bytes=sum(handle.tiling.workspace_bytes),
                tiling_data_bytes=len(handle.tiling.tiling_data),
            ),
            profile=profile.model_copy(update={"task_duration_us": statistics.median(samples)}),
            floor_us=floor_us(handle.spec, case, chip),
            cores=core_times_of(price, chip),
            ub_taken_bytes=handle.finished.ub_taken_bytes,
            stalls=self.stalls(run, price, timeline.path, protocol) if timeline else (),
            diagnostics=_beyond(price["read_beyond"], "reads") + _beyond(price["written_beyond"], "writes"),
        )

    def price(
        self, run: RunOutput, chip: Chip, timeline: TimelineRequest | None = None
    ) -> dict[str, Any] | Failure:
        """Return the output of the pricing program for a run, correct or not."""
        job: KernelJob = run.handle.job
        return price_trace(self.toolchain, job.trace, chip, job.tensor_ranges, timeline)

    def stalls(
        self, run: RunOutput, price: dict[str, Any], timeline: Path, protocol: MeasureProtocol
    ) -> tuple[Stall, ...]:
        """Run a kernel once more and return what its pipes wait for, by line of its sources.

        Args:
            run: that ended well.
            price: what the pricing program says about it.
            timeline: what it wrote of it.
            protocol: limits.
        """
        handle: _Run = run.handle

        def run_again(lines: str) -> str:
            outcome = handle.job.execute_again(self.toolchain.run_program, run_limits(protocol), lines)
            return outcome.stdout.decode("utf-8", "replace")

        flag_cycles = target_sheet(protocol.chip, starts_with_empty_l2=True).scalar.flag_cycles
        libraries, texts = handle.kernel.libraries, handle.candidate.texts
        return stalls_of(price, timeline, run_again, libraries, own_place, texts, flag_cycles)

    def repeatability(self, protocol: MeasureProtocol) -> float:
        """Return the spread of simulated noise (four standard deviations); without noise prices are exact."""
        return 4.0 * protocol.noise

    def cleanup(self, run: RunOutput) -> None:
        """Remove the files of a run."""
        handle: _Run = run.handle
        handle.job.close()
        remove_tree(handle.job.folder)

    def trouble(self) -> str | None:
        """Return what is wrong with the simulator on this host, or ``None``."""
        return simulator_trouble(self.toolchain)


def _prices_ahead(toolchain: Toolchain, job: KernelJob, protocol: MeasureProtocol) -> _Prices:
    """Have the price computed beside the search for races and the verdict, if that is quick."""
    if protocol.stalls or job.trace.size_bytes > _AHEAD_BYTES:
        return {}
    chip = load_chip(protocol.chip).under(protocol.convention)
    return {chip.digest: job.when_idle(partial(price_trace, toolchain, job.trace, chip, job.tensor_ranges))}


def _price_of(toolchain: Toolchain, run: _Run, chip: Chip) -> dict[str, Any] | Failure:
    """Return what was computed ahead, if anything was, or else compute it."""
    ahead = run.finished.ahead.get(chip.digest)
    return ahead.result() if ahead else price_trace(toolchain, run.job.trace, chip, run.job.tensor_ranges)


def _explained(
    case: Case,
    toolchain: Toolchain,
    run: _Run,
    protocol: MeasureProtocol,
    outputs: tuple[tuple[Array, ...], ...],
) -> tuple[Diagnostic, ...]:
    """Say what else is known of outputs that are wrong."""
    unset = unset_fields(run.tiling, run.candidate)
    unwritten = never_written(case, partial(_price_of, toolchain, run, load_chip(protocol.chip)), outputs)
    if unset or unwritten or not any(holds_nan(array) for arrays in outputs for array in arrays):
        return (*unset, *unwritten)
    return unwritten_read_of(toolchain, traced_run(toolchain, run.job, run.kernel, run_limits(protocol)))


def _key_of(tiling: TilingOutcome | Failure | None) -> int | Failure | None:
    return tiling.tiling_key if isinstance(tiling, TilingOutcome) else tiling


def includes_collectives(text: str) -> bool:
    """Whether a source includes collective communication."""
    return _COLLECTIVE.search(text) is not None


def _tell(message: str) -> None:
    sys.stderr.write(message + "\n")


def _unread(missing: dict[str, int]) -> Failure:
    listing = ", ".join(f"{count} bytes of {name}" for name, count in missing.items())
    message = (
        f"no instruction of the kernel reads {listing}, on which the output depends: "
        "it was not computed by Ascend C instructions"
    )
    return Failure.of(Status.GUARD_REJECTED, Phase.GUARD, message)


def _beyond(reached: dict[str, int], verb: str) -> tuple[Diagnostic, ...]:
    """Warn about copies that reach further behind a tensor than the 32 bytes that aclrtMalloc guarantees."""
    return tuple(
        Diagnostic(
            phase=Phase.RUN_KERNEL,
            message=f"a copy {verb} up to {count} bytes behind the end of {name}: "
            "harmless only where allocations are rounded up to 512 bytes",
        )
        for name, count in reached.items()
    )


def _ended_early(seconds: float) -> Failure:
    message = "the kernel ended its process before the launch was over"
    return Failure.of(Status.RUNTIME_FAULT, Phase.RUN_KERNEL, message, seconds)


def _unwritten(missing: dict[str, int]) -> Failure:
    listing = ", ".join(f"{count} bytes of {name}" for name, count in missing.items())
    message = f"no instruction of the kernel wrote {listing}: the output was not computed by this kernel"
    return Failure.of(Status.GUARD_REJECTED, Phase.GUARD, message)
