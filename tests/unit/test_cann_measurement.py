"""Sampling: when it ends, what it throws away, and what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from cann_samples import basic_info, write_several

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase
from ascend_gym.core.status import Status
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.cann.measurement import CLEANER, Measured, Subject, measure
from npu_daemon.sandbox import ProcessOutcome

SETTINGS = CannSettings(rounds=6, max_batches=4)


class Bench:
    """Subjects whose calls take what a test says; notes the order in which they are profiled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.order: list[str] = []
        self.clocks_mhz: Iterator[int] = iter(())
        self.returncode = 0

    def subject(self, name: str, times_us: Iterator[float], kernels: int = 1) -> Subject:
        folder = self.folder / name
        folder.mkdir()

        def execute(rounds: int, profiler: Sequence[str]) -> ProcessOutcome:
            self.order.append(name)
            assert "--kernel-name=*" in profiler, "or it collects the first kernel alone"
            output = next(Path(word.partition("=")[2]) for word in profiler if word.startswith("--output="))
            clock = {"Current Freq": next(self.clocks_mhz, 1800)}
            rows = []
            for _ in range(rounds):
                us = next(times_us) / kernels
                rows += [basic_info(CLEANER, 80.0), *(basic_info("A", us, **clock) for _ in range(kernels))]
            write_several(output, rows)
            return ProcessOutcome(self.returncode, None, False, False, b"", b"no licence", 1.0, 1.0)

        return Subject(folder, execute, lambda outcome: None)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def _always(us: float) -> Iterator[float]:
    while True:
        yield us


def _growing(us: float) -> Iterator[float]:
    while True:
        yield us
        us *= 1.05


def _texts(measured: Measured | Failure) -> str:
    assert isinstance(measured, Measured)
    return "\n".join(each.message for each in measured.diagnostics)


def test_steady_times_need_one_batch_and_a_profile(bench: Bench) -> None:
    measured = measure(bench.subject("c", _always(50.0), kernels=2), None, SETTINGS)
    assert "6 samples, median 50.000 us, 95 % interval 50.000 to 50.000 us" in _texts(measured)
    assert bench.order == ["c", "c"]
    assert isinstance(measured, Measured)
    assert measured.samples_us == (50.0,) * 6
    assert measured.profile.task_duration_us == 50.0


def test_candidate_and_baseline_take_turns_in_going_first(bench: Bench) -> None:
    measured = measure(bench.subject("c", _growing(50.0)), bench.subject("b", _growing(100.0)), SETTINGS)
    assert bench.order == ["c", "b", "b", "c", "c", "b", "b", "c", "c"]
    assert "0.5000 of the baseline's time in 4 pairs" in _texts(measured)
    assert "noisy: the interval is wider than 1.0%" in _texts(measured)


def test_batches_at_a_low_clock_are_thrown_away(bench: Bench) -> None:
    bench.clocks_mhz = iter([1000])
    measured = measure(bench.subject("c", _always(50.0)), None, SETTINGS)
    assert "1 batches thrown away because the clock was low" in _texts(measured)
    bench.clocks_mhz = iter([1000] * 9)
    with pytest.raises(InfrastructureError, match="in all 4 batches"):
        measure(bench.subject("d", _always(50.0)), None, SETTINGS)


def test_a_clock_that_the_profiler_does_not_tell_is_told(bench: Bench) -> None:
    bench.clocks_mhz = iter(["NA"] * 99)  # type: ignore[list-item]
    measured = measure(bench.subject("c", _always(50.0)), None, SETTINGS)
    assert "the profiler tells no clock in 1 batches" in _texts(measured)


@pytest.mark.parametrize("warm_up", [0, 5])
def test_launches_to_warm_up_are_those_of_the_subject(bench: Bench, warm_up: int) -> None:
    options: list[str] = []
    subject = bench.subject("c", _always(50.0))

    def execute(rounds: int, profiler: Sequence[str]) -> ProcessOutcome:
        options.extend(profiler)
        return subject.execute(rounds, profiler)

    assert isinstance(
        measure(Subject(subject.folder, execute, subject.diagnose, warm_up), None, SETTINGS), Measured
    )
    assert {word for word in options if word.startswith("--warm-up")} == {f"--warm-up={warm_up}"}


def test_a_request_may_ask_for_more_samples(bench: Bench) -> None:
    measured = measure(bench.subject("c", _always(50.0)), None, SETTINGS, repeats=20)
    assert isinstance(measured, Measured)
    assert len(measured.samples_us) == 24, "whole batches of 6"
    more = measure(bench.subject("d", _always(50.0)), None, SETTINGS, repeats=31)
    assert isinstance(more, Measured)
    assert len(more.samples_us) == 36, "beyond max_batches"


def test_time_ends_sampling(bench: Bench) -> None:
    clock = iter(range(0, 10_000, 100))
    measured = measure(bench.subject("c", _growing(50.0)), None, SETTINGS, clock_s=lambda: float(next(clock)))
    assert isinstance(measured, Measured)
    assert len(measured.samples_us) == 2 * SETTINGS.rounds, "200 s are more than 180"


def test_a_call_that_launches_nothing_is_refused(bench: Bench) -> None:
    def nothing(rounds: int, profiler: Sequence[str]) -> ProcessOutcome:
        write_several(bench.folder / "none" / "profile", [basic_info(CLEANER)] * rounds, metrics=False)
        return ProcessOutcome(0, None, False, False, b"", b"", 1.0, 1.0)

    (bench.folder / "none").mkdir()
    failure = measure(Subject(bench.folder / "none", nothing, lambda outcome: None), None, SETTINGS)
    assert isinstance(failure, Failure)
    assert failure.status is Status.GUARD_REJECTED
    assert "launched nothing on the device" in failure.diagnostics[0].message


def test_a_profiler_that_fails_is_not_the_candidates_fault(bench: Bench) -> None:
    bench.returncode = 9
    with pytest.raises(InfrastructureError, match="exit status 9: no licence"):
        measure(bench.subject("c", _always(50.0)), None, SETTINGS)


def test_a_baseline_that_fails_is_not_the_candidates_fault(bench: Bench) -> None:
    complaint = Diagnostic(phase=Phase.RUN_KERNEL, message="it fell")
    refused = Failure(Status.RUNTIME_FAULT, (complaint,))
    broken = bench.subject("b", _always(50.0))
    broken = Subject(broken.folder, broken.execute, lambda outcome: refused)
    with pytest.raises(InfrastructureError, match="the operator's own baseline fails: it fell"):
        measure(bench.subject("c", _always(50.0)), broken, SETTINGS)
