"""The backend for real NPUs: builds with the CANN toolkit, runs on devices and times with ``msprof op``.

It has been tested against stand-ins for the vendor's tools, not on hardware; see ``docs/cann.md``.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import npu_daemon
from ascend_gym.core.digest import digest_of, digest_of_tree
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Built, Failure, RunOutput
from ascend_gym.core.records import (
    Candidate,
    Case,
    CaseResult,
    DeviceInfo,
    Diagnostic,
    DType,
    MeasureProtocol,
    OpSpec,
    Phase,
    TargetSheet,
)
from ascend_gym.core.remove_tree import remove_tree, scratch_folder
from ascend_gym.core.status import Status
from ascend_gym.suite.inputs import Array, loaded_array
from npu_daemon.backends.run_folder import run_in_folder
from npu_daemon.cache_folder import CANN_FOLDER
from npu_daemon.cann.arguments import arguments_of, interface_of, unsupported_reason
from npu_daemon.cann.boundary import Boundary, unread
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.cann.devices import DevicePool, query_devices
from npu_daemon.cann.execution import (
    COLD,
    DeviceHost,
    DeviceSession,
    DeviceTroubleError,
    OperatorCall,
    convention_of,
    diagnose,
    is_warm,
    launched_nothing,
    prepare_call,
)
from npu_daemon.cann.instance import Instance
from npu_daemon.cann.measurement import Subject, measure
from npu_daemon.cann.opp_build import OppBuild, OppBuilder
from npu_daemon.cann.recording import COMMANDS
from npu_daemon.cann.runner_build import build_tools, runner_digest
from npu_daemon.cann.toolkit import open_toolkit
from npu_daemon.floor import floor_us
from npu_daemon.own_programs import unstartable
from npu_daemon.sandbox import ProcessOutcome
from npu_daemon.simulator.chips import load_chip
from npu_daemon.simulator.target import target_sheet

_JUDGING = ("cann/*.py", "backends/cann.py", "simulator/build_flags.py", "simulator/compiler_errors.py")
SANDBOX = "rlimits"  # at the run: what the driver needs is not known well enough to confine it


@dataclass(frozen=True)
class _Build:
    """An installed candidate, and the operator's baseline if it is measured as well."""

    spec: OpSpec
    candidate: Candidate
    opp: OppBuild
    baseline: OppBuild | None
    warnings: tuple[Diagnostic, ...]


@dataclass(frozen=True)
class _Run:
    """State of a finished run."""

    spec: OpSpec
    folder: Path
    call: OperatorCall
    baseline: OperatorCall | None
    rerun: int
    warnings: tuple[Diagnostic, ...]


class CannBackend:
    """Runs Ascend C on the NPUs of this host.

    Args:
        cache_dir: folder for builds and the states of devices.
        chip: chip of the devices, for example ``910B2``.
        settings: section ``[cann]`` of the daemon's configuration.

    Raises:
        InfrastructureError: toolkit or driver are unsuitable, or the simulator, which checks
            candidates first, does not compile; see ``npu-daemon doctor``.
        MisuseError: the chip does not exist.
    """

    measures_on_device = True

    def __init__(
        self,
        cache_dir: Path,
        chip: str = "910B2",
        settings: CannSettings | None = None,
    ) -> None:
        self._chip = load_chip(chip)
        self._settings = settings or CannSettings()
        folder = cache_dir / CANN_FOLDER
        toolkit = open_toolkit(self._settings)
        tools = partial(build_tools, toolkit, self._settings, folder)
        tools()
        self._host = DeviceHost(toolkit, tools, self._settings)
        self._builder = OppBuilder(toolkit, self._settings, folder)
        self._boundary = Boundary(cache_dir, self._chip)
        self._pool = DevicePool(folder, self._settings, chip)
        own = (digest_of_tree(Path(npu_daemon.__file__).parent, _JUDGING), runner_digest(), self._chip.digest)
        self._digest = digest_of("cann", toolkit.digest, self._boundary.digest, *own, self._settings)
        self._cores = int(self._chip.geometry["aiv_cores"].value)

    def describe(self) -> DeviceInfo:
        """Return the device with which this backend measures."""
        return DeviceInfo(
            backend="cann",
            chip=self._chip.name,
            toolchain_digest=self._digest,
            sandbox=SANDBOX,
            host=platform.node(),
        )

    def chips(self) -> tuple[str, ...]:
        """Return the chip of this host."""
        return (self._chip.name,)

    def target(self, chip: str) -> TargetSheet:
        """Return the facts about a chip."""
        return target_sheet(chip)

    def supports(self, spec: OpSpec, protocol: MeasureProtocol) -> Diagnostic | None:
        """Return the reason why the operator cannot be evaluated, or ``None``."""
        reason = unsupported_reason(spec)
        if protocol.chip != self._chip.name:
            reason = f"the NPUs of this daemon are {self._chip.name}, not {protocol.chip}"
        elif convention_of(protocol) == COLD:
            reason = "no first launch can be measured again and again on a device: ask for l2-cold or warm"
        elif protocol.noise > 0:
            reason = "noise is for simulated samples: leave it 0"
        return Diagnostic(phase=Phase.REQUEST, message=reason) if reason else None

    def build(
        self,
        spec: OpSpec,
        case: Case,
        candidate: Candidate,
        protocol: MeasureProtocol,
        on_launch: Callable[[str], None] = lambda _: None,
    ) -> Built | Failure:
        """Build candidate and baseline, each once per content, without holding a device.

        Args:
            spec: operator.
            case: shapes, types and attributes.
            candidate: tiling and kernel sources.
            protocol: time limits.
            on_launch: not called: what the tiling program hands on, only a device run tells.

        Returns:
            The build, or the candidate's fault.

        Raises:
            InfrastructureError: the operator's own baseline does not build.
        """
        made = self._checked(spec, case, candidate, protocol)
        if isinstance(made, Failure):
            return made
        opp, warnings = made
        baseline = None
        if self._settings.pair_with_baseline and candidate.digest != spec.baseline.digest:
            found = self._checked(spec, case, spec.baseline, protocol, whole=True)
            if isinstance(found, Failure):
                said = found.diagnostics[0].message
                raise InfrastructureError(f"the baseline of {spec.op_id} does not build on this host: {said}")
            baseline = found[0]
        seconds = opp.seconds + (baseline.seconds if baseline else 0.0)
        return Built(_Build(spec, candidate, opp, baseline, warnings), seconds)

    def _checked(
        self,
        spec: OpSpec,
        case: Case,
        candidate: Candidate,
        protocol: MeasureProtocol,
        *,
        whole: bool = False,
    ) -> tuple[OppBuild, tuple[Diagnostic, ...]] | Failure:
        """Build sources that pass the boundary; those that it cannot judge are built but refused by default.

        If the toolkit does not compile a source, the toolkit's own messages are returned. ``whole`` has all
        kernels compiled, as for a baseline: that is needed once for all candidates.
        """
        judged = self._boundary.judge(spec, case, candidate, protocol)
        if isinstance(judged, Failure) and not unread(judged):
            return judged
        instance = Instance() if whole or isinstance(judged, Failure) else judged
        opp = self._builder.build(spec, case, candidate, protocol, instance)
        if isinstance(opp, Failure) or not isinstance(judged, Failure):
            return opp if isinstance(opp, Failure) else (opp, ())
        return (opp, judged.diagnostics) if self._settings.run_unread else judged

    def run(
        self,
        built: Built,
        case: Case,
        inputs: Sequence[Sequence[Path]],
        protocol: MeasureProtocol,
        rerun: int = 0,
    ) -> RunOutput | Failure:
        """Call the operator once on a device; see ``Backend.run``.

        If nothing is launched of a build of one kernel, all kernels are built and it is called again.

        Args:
            built: build to execute.
            case: case that it was built for.
            inputs: raw little-endian files, one per tensor, in parameter order.
            protocol: limits.
            rerun: number of the rerun; see ``Backend.run``.

        Raises:
            InfrastructureError: the device or the runtime is at fault.
        """
        build: _Build = built.handle
        outcome = self._called(build, case, inputs, protocol, rerun)
        if not build.opp.instance or not isinstance(outcome, Failure) or not launched_nothing(outcome):
            return outcome
        whole = self._builder.build(build.spec, case, build.candidate, protocol)
        if isinstance(whole, Failure):
            return whole
        again = self._called(replace(build, opp=whole), case, inputs, protocol, rerun)
        if isinstance(again, RunOutput):
            self._builder.mistaken(build.opp)
        return again

    def _called(
        self,
        build: _Build,
        case: Case,
        inputs: Sequence[Sequence[Path]],
        protocol: MeasureProtocol,
        rerun: int,
    ) -> RunOutput | Failure:
        arguments = arguments_of(interface_of(build.spec), case)
        call = prepare_call(build.opp, arguments, inputs)
        if isinstance(call, Failure):
            return call
        baseline = prepare_call(build.baseline, arguments, inputs) if build.baseline else None
        if isinstance(baseline, Failure):
            raise InfrastructureError(f"the baseline's interface: {baseline.diagnostics[0].message}")
        return run_in_folder(
            "ascend-gym-npu-",
            lambda folder: self._run_in(
                _Run(build.spec, folder, call, baseline, rerun, build.warnings), case, protocol
            ),
        )

    def _run_in(self, run: _Run, case: Case, protocol: MeasureProtocol) -> RunOutput | Failure:
        with self._device() as device:
            subject = self._subject(run.folder, run.call, device, protocol, run.rerun)
            outcome = subject.execute(1, ())
            try:
                failure = subject.diagnose(outcome)
            except DeviceTroubleError as error:
                if not error.silent:
                    raise
                message = f"the operator's host code ended its process with exit status {outcome.returncode}"
                failure = Failure.of(Status.TILING_ERROR, Phase.RUN_TILING, message, outcome.seconds)
        if failure is not None:
            return failure
        outputs = tuple(
            tuple(
                _read(run.folder / f"out-{index}-{item}.bin", shape, tensor.dtype)
                for item, shape in enumerate(tensor.shapes)
            )
            for index, tensor in enumerate(case.outputs)
        )
        return RunOutput(outputs, run, outcome.seconds)

    def measure(self, run: RunOutput, case: Case, protocol: MeasureProtocol) -> CaseResult | Failure:
        """Time a run whose outputs were accepted as correct."""
        handle: _Run = run.handle
        with self._device() as device:
            candidate = self._subject(handle.folder, handle.call, device, protocol, handle.rerun)
            baseline = None
            if handle.baseline is not None:
                folder = handle.folder / "baseline"
                folder.mkdir(exist_ok=True)
                baseline = self._subject(folder, handle.baseline, device, protocol)
            before = query_devices(self._host.toolkit)[device].pids  # none of ours runs now
            measured = measure(candidate, baseline, self._settings, protocol.repeats)
            users = sorted({*before, *query_devices(self._host.toolkit)[device].pids})
        if isinstance(measured, Failure):
            return measured
        return CaseResult(
            case_id=case.case_id,
            status=Status.OK,
            samples_us=measured.samples_us,
            profile=measured.profile,
            floor_us=floor_us(handle.spec, case, self._chip),
            diagnostics=(*handle.warnings, *measured.diagnostics, *_shared(device, users)),
        )

    def repeatability(self, protocol: MeasureProtocol) -> float:
        """Return the maximum relative difference of two medians at the precision of the settings."""
        return 2.0 * self._settings.precision

    def cleanup(self, run: RunOutput) -> None:
        """Remove the files of a run."""
        handle: _Run = run.handle
        remove_tree(handle.folder)

    def trouble(self) -> str | None:
        """Return which program of ours or of the toolkit does not start, or ``None``."""
        toolkit = self._host.toolkit
        try:
            commands = [(toolkit.program(name), *rest) for name, *rest in COMMANDS]
            commands.append((str(self._host.tools().runner),))
        except InfrastructureError as error:
            return str(error)
        problems = (unstartable(command, toolkit.environment) for command in commands)
        return next((problem for problem in problems if problem is not None), None)

    @contextmanager
    def _device(self) -> Iterator[int]:
        """Hold a healthy device; unhealthy ones are excluded."""
        with self._pool.lease() as device:
            complaint = self._pool.complaint(device, query_devices(self._host.toolkit))
            if complaint is not None:
                self._pool.exclude(device, complaint)
                raise InfrastructureError(f"device {device} is not used any more: {complaint}")
            yield device

    def _subject(
        self, folder: Path, call: OperatorCall, device: int, protocol: MeasureProtocol, rerun: int = 0
    ) -> Subject:
        session = DeviceSession(self._host, device, self._cores, protocol)

        def run(rounds: int, profiler: Sequence[str]) -> ProcessOutcome:
            command = [self._host.toolkit.program("msprof"), *profiler] if profiler else ()
            return session.execute(call, folder, rounds, command, rerun)

        warm_up = self._settings.warm_up if is_warm(protocol) else 0
        return Subject(folder, run, partial(self._diagnose, session), warm_up)

    def _diagnose(self, session: DeviceSession, outcome: ProcessOutcome) -> Failure | None:
        """Return the candidate's fault; after any fault the device is tested, and excluded if the test fails.

        Raises:
            InfrastructureError: the device is at fault, or a program that is needed does not start.
        """
        try:
            failure = diagnose(outcome, session.protocol)
        except DeviceTroubleError as error:
            trouble = self.trouble()
            if trouble is not None:
                raise InfrastructureError(trouble) from error
            self._try(session, str(error))
            raise
        if failure is not None and failure.status in (Status.RUNTIME_FAULT, Status.TIMEOUT):
            self._try(session, failure.diagnostics[0].message)
        return failure

    def _try(self, session: DeviceSession, occasion: str) -> None:
        """Exclude a device that does not work even without a candidate."""
        with scratch_folder(prefix="ascend-gym-npu-") as folder:
            outcome = session.execute(None, folder)
            try:
                failed = diagnose(outcome, session.protocol)
                complaint = failed.diagnostics[0].message if failed is not None else None
            except DeviceTroubleError as error:
                complaint = str(error)
        if complaint is not None:
            self._pool.exclude(session.device, f"{complaint} (after: {occasion})")
            raise InfrastructureError(
                f"device {session.device} is not used any more: {complaint} (after: {occasion})"
            )


def _shared(device: int, users: Sequence[int]) -> tuple[Diagnostic, ...]:
    """Tell of processes of others that were on a device while it was measured."""
    if not users:
        return ()
    listed = ", ".join(map(str, users))
    said = f"device {device} is shared: processes {listed} of others may have disturbed these times"
    return (Diagnostic(phase=Phase.PRICE, message=said),)


def _read(path: Path, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return one output; a runner that ended well has written it completely."""
    found_bytes = 0 if path.is_symlink() else path.stat().st_size
    if found_bytes != dtype.size_bytes(math.prod(shape)):
        raise InfrastructureError(f"the runner left {found_bytes} bytes of an output of shape {shape}")
    return loaded_array(path.read_bytes(), dtype, shape)
