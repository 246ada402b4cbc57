"""Measurement of an operator's latency and what it is billed: ``msprof op``, beside its baseline."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase, Profile
from ascend_gym.core.remove_tree import remove_tree
from ascend_gym.core.status import Status
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.cann.msprof_files import (
    METRICS,
    DeviceTask,
    bank_conflict_share,
    l2_hit_share,
    profile_of,
    read_tasks,
)
from npu_daemon.cann.sampling import drift, median_interval, paired_ratio
from npu_daemon.sandbox import ProcessOutcome

CLEANER = "asg_l2_clean"
"""Prefix of the name of our own kernel, whose time does not count."""

MAX_TASKS = 5000  # of --launch-count
ALL_KERNELS = "--kernel-name=*"  # without it the profiler collects the first kernel of a process alone
_OUTPUT = "profile"
Execute = Callable[[int, Sequence[str]], ProcessOutcome]
"""Runs an operator a number of times under the profiler, given the arguments after ``msprof``."""


class BillingError(ValueError):
    """The tasks do not form equal windows; the message gives the reason."""


@dataclass(frozen=True)
class Window:
    """The tasks of one call of the operator."""

    tasks: tuple[DeviceTask, ...]

    @property
    def billed_us(self) -> float:
        """Total time of the call's tasks, in microseconds."""
        return sum(task.duration_us for task in self.tasks)

    @property
    def main(self) -> DeviceTask:
        """The longest task."""
        return max(self.tasks, key=lambda task: task.duration_us)


def split_windows(tasks: Sequence[DeviceTask], rounds: int) -> list[Window]:
    """Return the windows of ``rounds`` equal calls.

    A call may launch several kernels, and all of them count. Kernels of one name are in the order of their
    launch. The order of different names is unknown and does not matter, because each name must occur
    equally often in each window.

    Args:
        tasks: all tasks that the profiler recorded, including those of the cleaning kernel.
        rounds: number of calls.

    Raises:
        BillingError: only our own kernel ran, or calls launched different kernels.
    """
    by_name: dict[str, list[DeviceTask]] = {}
    for task in tasks:
        if not task.name.startswith(CLEANER):
            by_name.setdefault(task.name, []).append(task)
    if not by_name:
        raise BillingError(f"{rounds} calls of the operator launched nothing on the device")
    uneven = {name: len(found) for name, found in by_name.items() if len(found) % rounds}
    if uneven:
        raise BillingError(f"{rounds} equal calls launched different kernels: {uneven}")
    return [
        Window(
            tuple(
                task
                for found in by_name.values()
                for task in found[index * (len(found) // rounds) : (index + 1) * (len(found) // rounds)]
            )
        )
        for index in range(rounds)
    ]


class Diagnose(Protocol):
    """Interprets the outcome of a profiler run."""

    def __call__(self, outcome: ProcessOutcome) -> Failure | None:
        """Return the candidate's fault, if any."""


@dataclass(frozen=True)
class Subject:
    """An operator that can be profiled in a separate folder.

    Attributes:
        folder: folder of the job and of the profiler's output.
        execute: starts the profiler.
        diagnose: interprets the end of its process.
        warm_up: launches of the operator before each measured one; 0 where its data may not be in L2. The
            profiler's own default is 5, and they follow the cleaning of the cache.
    """

    folder: Path
    execute: Execute
    diagnose: Diagnose
    warm_up: int = 0

    def profile(self, rounds: int, metrics: Sequence[str]) -> list[Window] | Failure:
        """Call the operator ``rounds`` times under the profiler and return the window of each call.

        Raises:
            InfrastructureError: the profiler failed, or its output is not as documented.
        """
        output = self.folder / _OUTPUT
        remove_tree(output)
        output.mkdir(mode=0o700)
        command = [
            *("op", f"--output={output}", f"--warm-up={self.warm_up}"),
            *(ALL_KERNELS, f"--launch-count={MAX_TASKS}", f"--aic-metrics={','.join(metrics)}"),
        ]
        outcome = self.execute(rounds, command)
        failure = self.diagnose(outcome)
        if failure is not None:
            return failure
        if outcome.returncode != 0:
            log = outcome.stderr.decode("utf-8", "replace").strip()[-500:]
            raise InfrastructureError(f"msprof op failed with exit status {outcome.returncode}: {log}")
        try:
            return split_windows(read_tasks(output), rounds)
        except BillingError as error:
            return Failure.of(Status.GUARD_REJECTED, Phase.GUARD, str(error))


@dataclass(frozen=True)
class Measured:
    """Measurement of a case.

    Attributes:
        samples_us: latency of each call in microseconds.
        profile: profile of one further call.
        diagnostics: precision of the samples, and comparison with the baseline.
    """

    samples_us: tuple[float, ...]
    profile: Profile
    diagnostics: tuple[Diagnostic, ...]


@dataclass
class _Batches:
    """Samples so far, in blocks; the blocks of candidate and baseline correspond."""

    candidate: list[list[float]] = field(default_factory=list)
    baseline: list[list[float]] = field(default_factory=list)
    discarded: int = 0
    clockless: int = 0

    @property
    def samples(self) -> list[float]:
        return [sample for block in self.candidate for sample in block]


def measure(
    candidate: Subject,
    baseline: Subject | None,
    settings: CannSettings,
    repeats: int = 1,
    clock_s: Callable[[], float] = time.monotonic,
) -> Measured | Failure:
    """Sample until the median is as precise as the settings require, or one of their limits is reached.

    There are at least ``repeats`` samples, unless time runs out.

    Candidate and baseline are measured alternately, in changing order, so that drift affects both equally. A
    batch in which the clock was low is discarded.

    Args:
        candidate: candidate.
        baseline: the operator's own sources; ``None`` skips them.
        settings: precision, limits and clock tolerance.
        repeats: minimum number of samples.
        clock_s: returns monotonic seconds.

    Raises:
        InfrastructureError: the clock stays low, or the profiler fails.
    """
    batches, started_s = _Batches(), clock_s()
    rule = settings.stop_rule(repeats)
    for number in range(math.ceil(rule.max_samples / settings.rounds)):
        failure = _add_batch(batches, candidate, baseline, settings, baseline_first=bool(number % 2))
        if failure is not None:
            return failure
        enough = bool(batches.samples) and rule.reached(batches.samples)
        if enough or clock_s() - started_s > settings.sampling_s:
            break
    if not batches.samples:
        raise InfrastructureError(
            f"the clock was below its rated one in all {batches.discarded} batches: "
            "let the device cool, end other users of it, or raise clock_tolerance"
        )
    windows = candidate.profile(1, METRICS)
    if isinstance(windows, Failure):
        return windows
    precision = median_interval(batches.samples)
    return Measured(
        samples_us=tuple(batches.samples),
        profile=profile_of(windows[0].main, precision.median),
        diagnostics=_remarks(batches, windows[0], settings),
    )


def _add_batch(
    batches: _Batches,
    candidate: Subject,
    baseline: Subject | None,
    settings: CannSettings,
    *,
    baseline_first: bool,
) -> Failure | None:
    found: dict[str, list[Window]] = {}
    order = [("candidate", candidate), ("baseline", baseline)]
    for name, subject in reversed(order) if baseline_first else order:
        if subject is None:
            continue
        windows = subject.profile(settings.rounds, ("BasicInfo",))
        if isinstance(windows, Failure):
            if name == "candidate":
                return windows
            raise InfrastructureError(f"the operator's own baseline fails: {windows.diagnostics[0].message}")
        found[name] = windows
    mains = [window.main for windows in found.values() for window in windows]
    batches.clockless += any(task.current_mhz is None or task.rated_mhz is None for task in mains)
    if any(_slow_clock(window, settings) for windows in found.values() for window in windows):
        batches.discarded += 1
        return None
    batches.candidate.append([window.billed_us for window in found["candidate"]])
    if "baseline" in found:
        batches.baseline.append([window.billed_us for window in found["baseline"]])
    return None


def _slow_clock(window: Window, settings: CannSettings) -> bool:
    task = window.main
    if task.current_mhz is None or task.rated_mhz is None:
        return False
    return task.current_mhz < task.rated_mhz * (1 - settings.clock_tolerance)


def _remarks(batches: _Batches, window: Window, settings: CannSettings) -> tuple[Diagnostic, ...]:
    samples = batches.samples
    interval = median_interval(samples)
    texts = [
        f"{len(samples)} samples, median {interval.median:.3f} us, "
        f"95 % interval {interval.low:.3f} to {interval.high:.3f} us"
    ]
    if interval.relative_half_width > settings.precision:
        texts.append(
            f"noisy: the interval is wider than {settings.precision:.1%} on either side, "
            f"the second half is {drift(samples):+.1%} against the first"
        )
    if batches.discarded:
        texts.append(f"{batches.discarded} batches thrown away because the clock was low")
    if batches.clockless:
        texts.append(
            f"the profiler tells no clock in {batches.clockless} batches: whether it was low is not known"
        )
    if batches.baseline:
        ratio = paired_ratio(batches.candidate, batches.baseline)
        spread = f" (95 % interval {ratio.low:.4f} to {ratio.high:.4f})" if ratio.covered else ""
        texts.append(f"{ratio.median:.4f} of the baseline's time in {len(batches.baseline)} pairs{spread}")
    hits, conflicts = l2_hit_share(window.main), bank_conflict_share(window.main)
    if hits is not None and conflicts is not None:
        texts.append(f"L2 hits {hits:.1%}, vector cycles lost to UB bank conflicts {conflicts:.1%}")
    return tuple(Diagnostic(phase=Phase.PRICE, message=text) for text in texts)
