"""Runs of a built operator on a device with our runner: its job, its files and the meaning of its outcome."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Failure, layout_of
from ascend_gym.core.records import MeasureProtocol, Phase
from ascend_gym.core.status import Status
from npu_daemon.cann.arguments import Argument, declared_kinds, fitted
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.cann.opp_build import OppBuild
from npu_daemon.cann.runner_build import DeviceTools
from npu_daemon.cann.toolkit import Toolkit
from npu_daemon.sandbox import ProcessOutcome, ResourceLimits, run_limited

ADDRESS_SLOTS = 3
SYNC_TIMEOUT = 107020  # ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, acl/error_codes/rt_error_codes.h
_DEVICE_MEMORY_BYTES = 1 << 46  # of address space: the driver maps all device memory
_SLOT_BUDGET_BYTES = 4 << 30
_PROCESSES = 1024
_LONG_CALLS = 3  # of a job: how many calls may take as long as the first one may
COLD, L2_COLD, WARM = "cold", "l2-cold", "warm"
_JOB = "job"
_OUTPUT_LINES = frozenset({"done", "bad", "fault", "overrun", "changed"})
# Stages (runner.cpp) in which the operator's own code runs.
_STAGES = {
    "tiling": (Status.TILING_ERROR, Phase.RUN_TILING, "the operator's host code refused the call"),
    "workspace": (Status.RESOURCE_LIMIT, Phase.RUN_KERNEL, "the workspace could not be allocated"),
    "launch": (Status.RUNTIME_FAULT, Phase.RUN_KERNEL, "the kernel could not be launched"),
    "kernel": (Status.RUNTIME_FAULT, Phase.RUN_KERNEL, "the kernel failed on the device"),
}


class DeviceTroubleError(InfrastructureError):
    """The device or the runtime failed while no candidate was running.

    Attributes:
        silent: whether the runner ended without a word, as where somebody else's code ends its process.
    """

    def __init__(self, message: str, *, silent: bool = False) -> None:
        super().__init__(message)
        self.silent = silent


@dataclass(frozen=True)
class OperatorCall:
    """One built operator, ready to be called.

    Attributes:
        build: operator.
        arguments: arguments of the call.
        inputs: file of each input by its name in the run's folder.
    """

    build: OppBuild
    arguments: tuple[Argument, ...]
    inputs: dict[str, Path]


@dataclass(frozen=True)
class DeviceHost:
    """Programs and settings for runs.

    Attributes:
        tools: obtains our programs before each run: damaged ones are made again.
    """

    toolkit: Toolkit
    tools: Callable[[], DeviceTools]
    settings: CannSettings


def prepare_call(
    build: OppBuild, arguments: Sequence[Argument], inputs: Sequence[Sequence[Path]]
) -> OperatorCall | Failure:
    """Return the call of a built operator, or a failure if its header contradicts its definition."""
    files = {
        f"in-{index}-{item}.bin": path
        for index, paths in enumerate(inputs)
        for item, path in enumerate(paths)
    }
    kinds = declared_kinds(build.header, build.function)
    if kinds is None:
        return Failure.of(Status.BUILD_ERROR, Phase.BUILD_TILING, f"the build declares no {build.function}")
    agreed = fitted(arguments, kinds, files)
    if isinstance(agreed, str):
        message = f"{agreed}: the interface of an operator must stay as it is"
        return Failure.of(Status.BUILD_ERROR, Phase.BUILD_TILING, message)
    return OperatorCall(build, agreed, files)


@dataclass(frozen=True)
class DeviceSession:
    """Runs on one device.

    Attributes:
        host: programs and settings.
        device: number of the device.
        cores: number of cores on which the cache is cleaned.
        protocol: measurement protocol.
    """

    host: DeviceHost
    device: int
    cores: int
    protocol: MeasureProtocol

    def execute(
        self,
        call: OperatorCall | None,
        folder: Path,
        rounds: int = 1,
        profiler: Sequence[str] = (),
        rerun: int = 0,
    ) -> ProcessOutcome:
        """Start the runner, optionally under a profiler, and wait for all of its processes.

        Args:
            call: call to make; ``None`` only tests the device.
            folder: folder for the job and the outputs.
            rounds: number of calls.
            profiler: profiler command and options to put before the runner's.
            rerun: see ``Backend.run``.
        """
        tools, keeps_cache = self.host.tools(), bool(profiler) and is_warm(self.protocol)
        self._write_job(call, rounds, rerun, folder, tools.cleaner, keeps_cache=keeps_cache)
        settings, toolkit = self.host.settings, self.host.toolkit
        wall_s = settings.start_timeout_s + min(rounds, _LONG_CALLS) * self.protocol.run_timeout_s
        limits = ResourceLimits(
            wall_s=wall_s,
            cpu_s=wall_s,
            memory_bytes=_DEVICE_MEMORY_BYTES,
            file_bytes=self.protocol.output_limit_bytes,
            processes=_PROCESSES,
            open_files=4096,
        )
        environment = {**toolkit.environment, "HOME": str(folder)}
        if call is not None:
            environment["ASCEND_CUSTOM_OPP_PATH"] = str(call.build.vendor)
            own = call.build.library.parent
            environment["LD_LIBRARY_PATH"] = f"{own}:{toolkit.environment['LD_LIBRARY_PATH']}"
        command = [*profiler, str(tools.runner), _JOB]
        return run_limited(command, cwd=folder, limits=limits, reach=None, env=environment)

    def _write_job(
        self,
        call: OperatorCall | None,
        rounds: int,
        rerun: int,
        folder: Path,
        cleaner: Path,
        *,
        keeps_cache: bool,
    ) -> None:
        """Write the job; where it keeps the cache, nothing is cleaned and all calls have the same tensors."""
        lines = [f"device {self.device}", f"time_limit_ms {int(self.protocol.run_timeout_s * 1000)}"]
        if not keeps_cache:
            lines.append(f"cleaner ./libcleaner.so {self.cores} {self.host.settings.clean_bytes}")
        links = {"libcleaner.so": cleaner}
        if call is not None:
            links |= {**call.inputs, "libopapi.so": call.build.library}
            lines += ["library ./libopapi.so", f"function {call.build.function}"]
            lines += [
                f"rounds {rounds}",
                f"slots {1 if keeps_cache else _slots(call)}",
                f"rerun {layout_of(rerun)}",
            ]
            lines += [argument.line for argument in call.arguments]
        for name, target in links.items():
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(target)
        (folder / _JOB).write_text("\n".join(lines) + "\n", encoding="utf-8")


def convention_of(protocol: MeasureProtocol) -> str:
    """Return what a measured launch finds in the caches: ``cold``, ``l2-cold`` or ``warm``.

    A protocol without the field is measured ``l2-cold``: none of the operator's data in L2.
    """
    return protocol.convention.value


def is_warm(protocol: MeasureProtocol) -> bool:
    """Whether a launch follows one of the same kernel on the same tensors, with nothing in between."""
    return convention_of(protocol) == WARM


def diagnose(outcome: ProcessOutcome, protocol: MeasureProtocol) -> Failure | None:
    """Return the candidate's fault in a run; ``None`` if the run ended well.

    Raises:
        DeviceTroubleError: something failed that does not involve the candidate.
    """
    said = _last_words(outcome)
    kind, _, rest = said.partition(" ")
    if outcome.timed_out:
        return _timeout(protocol, outcome.seconds)
    if kind == "done" and outcome.returncode == 0:
        return None
    if outcome.exceeded is not None:
        message = f"the run exceeded its {outcome.exceeded} limit"
        return Failure.of(Status.RESOURCE_LIMIT, Phase.RUN_KERNEL, message, outcome.seconds)
    if kind == "fault":
        return _device_fault(rest, protocol, outcome.seconds)
    if kind == "overrun":
        name, _, where = rest.partition(" ")
        side = "before its start" if where == "before" else "more than 32 bytes behind its end"
        message = f"memory of {name} was written {side}"
        return Failure.of(Status.RUNTIME_FAULT, Phase.RUN_KERNEL, message, outcome.seconds)
    if kind == "changed":
        message = f"the run changed input {rest}, which is read-only: write nothing but the outputs"
        return Failure.of(Status.GUARD_REJECTED, Phase.GUARD, message, outcome.seconds)
    if kind == "bad" and ("cannot load ./libopapi" in rest or "no function aclnn" in rest):
        return Failure.of(
            Status.BUILD_ERROR, Phase.BUILD_TILING, f"the built operator: {rest}", outcome.seconds
        )
    if kind != "bad" and outcome.signal is not None:
        name = signal.Signals(outcome.signal).name
        message = f"the operator's host code ended its process with {name}"
        return Failure.of(Status.TILING_ERROR, Phase.RUN_TILING, message, outcome.seconds)
    log = outcome.stderr.decode("utf-8", "replace").strip()[-500:]
    raise DeviceTroubleError(
        f"the runner failed: {said or f'exit status {outcome.returncode}'}. {log}".strip(), silent=not said
    )


def launched_nothing(failure: Failure) -> bool:
    """Whether a run ended before any kernel began, as where the one to launch was not compiled."""
    told = failure.diagnostics[0].message
    return any(told.startswith(_STAGES[stage][2]) for stage in ("tiling", "launch"))


def _device_fault(text: str, protocol: MeasureProtocol, seconds: float) -> Failure:
    stage, _, rest = text.partition(" ")
    if stage not in _STAGES:
        raise DeviceTroubleError(f"the device failed at {stage}: {rest}")
    code = rest.split(" ", 1)[0]
    if stage == "kernel" and code == str(SYNC_TIMEOUT):
        return _timeout(protocol, seconds)
    status, phase, meaning = _STAGES[stage]
    return Failure.of(status, phase, f"{meaning}: error {rest}", seconds)


def _timeout(protocol: MeasureProtocol, seconds: float) -> Failure:
    message = f"the kernel did not end within {protocol.run_timeout_s:g} s: look for an endless loop"
    return Failure.of(Status.TIMEOUT, Phase.RUN_KERNEL, message, seconds)


def _last_words(outcome: ProcessOutcome) -> str:
    """Return the runner's last line of output, ignoring lines of profilers."""
    lines = outcome.stdout.decode("utf-8", "replace").splitlines()
    own = [line for line in lines if line.split(" ", 1)[0] in _OUTPUT_LINES]
    return own[-1] if own else ""


def _slots(call: OperatorCall) -> int:
    """Return the number of addresses between which each tensor alternates, within a memory limit."""
    total_bytes = sum(path.stat().st_size for path in call.inputs.values())
    return ADDRESS_SLOTS if total_bytes * ADDRESS_SLOTS <= _SLOT_BUDGET_BYTES else 1
