"""What a candidate that passed has to pass again, on the fake backend."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_backend import FakeBackend, make_operator, make_request

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Built, Failure, RunOutput
from ascend_gym.core.records import Case, CaseResult, Diagnostic, EvalResult, MeasureProtocol, OpSpec, Phase
from ascend_gym.core.status import Status
from ascend_gym.suite.inputs import Array
from ascend_gym.suite.oracle import oracle_for
from npu_daemon import processors
from npu_daemon.case_data import CaseDataCache
from npu_daemon.pipeline import evaluate
from npu_daemon.second_look import FRESH_SEEDS, SECRET_NAME, fresh_seed, obtain_secret, other_seeds
from npu_daemon.service import EvaluationService, open_service

ONCE, OTHER_VALUES = [("small", 0), ("large", 0)], [("small", 1)]
EVERY_CASE_TWICE = [("small", 1), ("small", 2), ("large", 1), ("large", 2)]


@pytest.fixture(autouse=True)
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """No processor is idle, whatever else runs on this machine: the order of runs is fixed."""
    monkeypatch.setattr(processors, "none_waits", lambda: False)


@pytest.fixture
def spec(tmp_path: Path) -> OpSpec:
    return make_operator(tmp_path / "double_it")


@pytest.fixture
def backend(tmp_path: Path) -> FakeBackend:
    return FakeBackend(tmp_path / "cache")


@pytest.fixture
def service(tmp_path: Path, backend: FakeBackend) -> Iterator[EvaluationService]:
    service = open_service(backend, tmp_path / "cache")
    yield service
    service.close()


def run(spec: OpSpec, backend: FakeBackend, *directives: str, **how: float | MeasureProtocol) -> EvalResult:
    best_us = how.pop("best_us", None)
    assert best_us is None or isinstance(best_us, float)
    request = make_request(spec, *directives, **how)
    data = CaseDataCache(backend.scratch_dir.parent / "case_data", "harness")
    return evaluate(request, spec, backend, oracle_for(spec), data, best_us=best_us)


def first_message(result: EvalResult) -> str:
    return result.all_diagnostics[0].message


def test_the_smallest_case_is_run_again_on_other_values(spec: OpSpec, backend: FakeBackend) -> None:
    result = run(spec, backend)
    assert result.status is Status.OK
    assert backend.reruns == [("small", 0), ("large", 0), ("small", 1)]
    assert result.charge.device_seconds == 1.0  # the second look is not charged
    assert result.all_diagnostics == ()


def test_what_is_right_only_once_is_refused(spec: OpSpec, backend: FakeBackend) -> None:
    result = run(spec, backend, "wrong_later")
    assert result.status is Status.INCORRECT
    assert first_message(result).startswith(
        "passed once, but not with other values at other addresses: output y"
    )
    assert [(case.case_id, case.status) for case in result.cases] == [("small", Status.INCORRECT)]
    assert result.charge.evaluations == 1
    assert backend.live_runs == 0


def test_the_other_values_follow_from_candidate_and_seed(spec: OpSpec) -> None:
    requests = [make_request(spec, f"candidate {number}") for number in range(40)]
    seeds = [fresh_seed(request) for request in requests]
    assert seeds == [fresh_seed(request) for request in requests]
    assert len(set(seeds)) == FRESH_SEEDS
    assert 0 not in seeds
    other = make_request(spec, "candidate 0", protocol=MeasureProtocol(input_seed=1))
    assert fresh_seed(other) not in set(seeds)


@pytest.mark.parametrize(("latency", "looks"), [("50", EVERY_CASE_TWICE), ("100", [])])
def test_a_champion_is_run_and_measured_again_on_every_case(
    spec: OpSpec, backend: FakeBackend, latency: str, looks: list[tuple[str, int]]
) -> None:
    assert run(spec, backend, f"latency: {latency}", best_us=100.0).status is Status.OK
    assert backend.reruns == [*ONCE, *OTHER_VALUES, *looks]


def test_of_two_latencies_of_a_champion_the_slower_counts(spec: OpSpec, backend: FakeBackend) -> None:
    result = run(spec, backend, "latency: 50", "latency_later: 80", best_us=100.0)
    assert [case.latency_us for case in result.cases] == [80.0, 80.0]
    assert first_message(result).startswith("measured twice, 50 us and 80 us")
    lucky = run(spec, backend, "latency: 50", "latency_later: 40", best_us=100.0)
    assert [case.latency_us for case in lucky.cases] == [50.0, 50.0]


def test_a_champion_whose_work_depends_on_values_gets_the_slower_price(
    spec: OpSpec, backend: FakeBackend
) -> None:
    result = run(spec, backend, "latency: 50", "latency_of_values: 70", best_us=100.0)
    assert [case.latency_us for case in result.cases] == [70.0, 70.0]
    assert first_message(result).startswith("work depends on values: 50 us on public, 70 us on secret values")
    faster = run(spec, backend, "latency: 50", "latency_of_values: 30", best_us=100.0)
    assert [case.latency_us for case in faster.cases] == [50.0, 50.0]
    assert "50 us on public, 30 us on secret values" in first_message(faster)


def test_values_of_a_champion_follow_from_the_secret(spec: OpSpec, tmp_path: Path) -> None:
    values = []
    for folder, best_us in (("one", 50), ("one", 40), ("other", 50)):
        backend = FakeBackend(tmp_path / folder / "scratch")
        service = open_service(backend, tmp_path / folder)
        for latency_us in (100, best_us):
            request = make_request(spec, f"latency: {latency_us}")
            assert service.answer(request).status is Status.OK
        service.close()
        by_rerun = dict(zip(backend.reruns, backend.first_values, strict=True))
        values.append((by_rerun["large", 0], by_rerun["large", 1], by_rerun["large", 2]))
    (public, secret, again), same_daemon, other_daemon = values
    assert again == public == same_daemon[0] == other_daemon[0]
    assert len({public, secret, other_daemon[1]}) == 3


@pytest.mark.parametrize("champion", [False, True])
def test_the_first_correct_candidate_has_all_sets_of_values_generated_that_those_after_it_need(
    spec: OpSpec, backend: FakeBackend, tmp_path: Path, champion: bool
) -> None:
    request = make_request(spec, "latency: 50")
    if not champion:
        request = request.model_copy(update={"candidate": spec.baseline})
    service = open_service(backend, tmp_path / "cache")
    assert service.answer(request).status is Status.OK
    service._ahead._beside.shutdown()  # waits for all of them
    data = service._case_data
    generated = data.generated
    oracle, seeds = oracle_for(spec), other_seeds(request.protocol.input_seed)
    sets = [data.obtain(spec, oracle, spec.case("small"), seed, audited=False) for seed in seeds]
    if champion:
        sets += [data.obtain_secret(spec, oracle, case, seed) for case in spec.cases for seed in seeds]
    for each in sets:
        assert data.unchanged.changed(each.files, confined=True) is None
    assert data.generated == generated
    assert generated == len(spec.cases) + len(sets)  # and no others
    service.close()


def test_a_set_of_values_is_generated_once_by_those_who_want_it_at_once(
    spec: OpSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle, case = oracle_for(spec), spec.cases[0]
    caches = [CaseDataCache(tmp_path / "data", "harness") for _ in range(2)]
    draw, both, drawn = oracle.inputs, threading.Barrier(2), []

    def inputs(case: Case, seed: int) -> Sequence[Sequence[Array]]:
        drawn.append(seed)
        return draw(case, seed)

    def obtain(cache: CaseDataCache) -> Path:
        both.wait(60.0)
        return cache.obtain(spec, oracle, case, seed=7).folder

    monkeypatch.setattr(oracle, "inputs", inputs)
    with ThreadPoolExecutor(max_workers=2) as pool:
        folders = set(pool.map(obtain, caches))
    assert (drawn, len(folders)) == ([7], 1)


def test_the_secret_is_for_its_owner_only(tmp_path: Path) -> None:
    secret = obtain_secret(tmp_path)
    file = tmp_path / SECRET_NAME
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (obtain_secret(tmp_path), len(secret)) == (secret, 32)
    assert [each.name for each in tmp_path.iterdir()] == [SECRET_NAME]
    file.chmod(0o640)
    with pytest.raises(InfrastructureError, match="only their owner"):
        obtain_secret(tmp_path)


def test_what_chance_explains_keeps_its_first_latency(spec: OpSpec, backend: FakeBackend) -> None:
    noisy = MeasureProtocol(noise=0.05)
    result = run(spec, backend, "latency: 50", "latency_later: 59", best_us=100.0, protocol=noisy)
    assert [case.latency_us for case in result.cases] == [50.0, 50.0]
    assert result.all_diagnostics == ()
    beyond = run(spec, backend, "latency: 50", "latency_later: 61", best_us=100.0, protocol=noisy)
    assert [case.latency_us for case in beyond.cases] == [61.0, 61.0]


def test_a_latency_below_the_floor_is_measured_again_and_not_paid(spec: OpSpec, backend: FakeBackend) -> None:
    result = run(spec, backend, "latency: 5", "floor: 8")
    assert backend.reruns[2:] == [("small", 1), ("small", 2)]
    assert result.status is Status.GUARD_REJECTED
    assert result.latency_us is None
    assert "suspicious: took 5 us" in first_message(result)
    assert "at least 8 us" in first_message(result)
    assert result.all_diagnostics[0].phase is Phase.GUARD
    assert result.cases[0].floor_us == 8.0


def test_a_latency_that_was_below_the_floor_only_once_is_paid_as_the_second(
    spec: OpSpec, backend: FakeBackend
) -> None:
    result = run(spec, backend, "latency: 5", "latency_later: 9", "floor: 8")
    assert result.status is Status.OK
    assert [case.latency_us for case in result.cases] == [9.0, 9.0]


def test_noise_alone_is_not_suspicious(spec: OpSpec, backend: FakeBackend) -> None:
    result = run(spec, backend, "latency: 7.9", "floor: 8", protocol=MeasureProtocol(noise=0.01))
    assert result.status is Status.OK
    assert [case.latency_us for case in result.cases] == [7.9, 7.9]


def test_the_service_looks_closer_at_what_beats_all_before_it(
    service: EvaluationService, spec: OpSpec, backend: FakeBackend
) -> None:
    looks = []
    for latency in (100, 90, 95, 80):
        backend.reruns.clear()
        assert service.answer(make_request(spec, f"latency: {latency}")).status is Status.OK
        looks.append(len(backend.reruns))
    assert looks == [6, 7, 3, 7]  # where nothing was measured before, nothing is known of what is slow
    backend.reruns.clear()
    alone = make_request(spec, "latency: 200", case_ids=("small",))
    assert service.answer(alone).status is Status.OK  # another question has another champion
    assert backend.reruns == [("small", 0), ("small", 1), ("small", 2)]


def test_the_operators_own_sources_are_no_champion(
    service: EvaluationService, spec: OpSpec, backend: FakeBackend
) -> None:
    own = make_request(spec).model_copy(update={"candidate": spec.baseline})
    assert service.answer(own).status is Status.OK
    assert len(backend.reruns) == 3


def test_a_refused_champion_is_none(service: EvaluationService, spec: OpSpec, backend: FakeBackend) -> None:
    service.answer(make_request(spec))
    assert service.answer(make_request(spec, "latency: 1", "wrong_later")).status is Status.INCORRECT
    backend.reruns.clear()
    service.answer(make_request(spec, "latency: 50"))
    assert len(backend.reruns) == 7


class MeetingBackend(FakeBackend):
    """Runs or prices the large case once the run on other values has begun, or has given up waiting."""

    def __init__(self, cache_dir: Path, wait_s: float, *, before_run: bool = False) -> None:
        super().__init__(cache_dir)
        self.wait_s, self.before_run = wait_s, before_run
        self.begun = threading.Event()
        self.met: list[bool] = []
        self.last_price: Failure | None = None

    def run(
        self,
        built: Built,
        case: Case,
        inputs: Sequence[Sequence[Path]],
        protocol: MeasureProtocol,
        rerun: int = 0,
    ) -> RunOutput | Failure:
        if rerun == 1:
            self.begun.set()
        elif self.before_run and case.case_id == "large":
            self.met.append(self.begun.wait(self.wait_s))
        return super().run(built, case, inputs, protocol, rerun)

    def measure(self, run: RunOutput, case: Case, protocol: MeasureProtocol) -> CaseResult | Failure:
        if not self.before_run and case.case_id == "large":
            self.met.append(self.begun.wait(self.wait_s))
            if self.last_price is not None:
                return self.last_price
        return super().measure(run, case, protocol)


@pytest.mark.parametrize("directives", [(), ("wrong_later",)])
def test_other_values_are_run_while_the_last_case_is_judged_and_priced(
    spec: OpSpec, tmp_path: Path, directives: tuple[str, ...]
) -> None:
    beside, alone = MeetingBackend(tmp_path / "beside", 60.0), MeetingBackend(tmp_path / "alone", 0.0)
    alone.measures_on_device = True
    results = [run(spec, backend, *directives, best_us=100.0) for backend in (beside, alone)]
    assert (beside.met, alone.met) == ([True], [False])
    assert beside.reruns == alone.reruns == [("small", 0), ("large", 0), ("small", 1)]
    assert results[0].cases == results[1].cases
    assert beside.live_runs == 0


@pytest.mark.parametrize("directives", [(), ("wrong",), ("wrong_later",)])
def test_other_values_are_run_beside_the_last_case_where_a_processor_is_idle(
    spec: OpSpec, tmp_path: Path, directives: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = run(spec, FakeBackend(tmp_path / "busy"), *directives, best_us=100.0)
    monkeypatch.setattr(processors, "none_waits", lambda: True)
    device, backend = OneDevice(), MeetingBackend(tmp_path / "idle", 60.0, before_run=True)
    request = make_request(spec, *directives)
    data = CaseDataCache(tmp_path / "case_data", "harness")
    result = evaluate(request, spec, backend, oracle_for(spec), data, device=device, best_us=100.0)
    assert backend.met == ([] if "wrong" in directives else [True])  # the small case is wrong already
    assert result.cases == busy.cases
    assert backend.live_runs == 0
    assert not device.clash.is_set()  # both hold the device that the evaluation has


def test_a_run_that_nobody_wants_any_more_is_awaited(spec: OpSpec, tmp_path: Path) -> None:
    backend = MeetingBackend(tmp_path / "cache", 60.0)
    backend.last_price = Failure(Status.GUARD_REJECTED, (Diagnostic(phase=Phase.GUARD, message="no"),))
    result = run(spec, backend, best_us=100.0)
    assert (result.status, backend.met, backend.live_runs) == (Status.GUARD_REJECTED, [True], 0)


class OneDevice:
    """A gate that lets one in at a time, and notes who finds it taken."""

    def __init__(self) -> None:
        self.taken, self.clash = threading.Lock(), threading.Event()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        if not self.taken.acquire(blocking=False):
            self.clash.set()
            self.taken.acquire()
        try:
            yield
        finally:
            self.taken.release()


class SlowOnOtherValues(FakeBackend):
    """Keeps the device on other values until somebody else wants it, or a while has passed."""

    clash = threading.Event()

    def run(
        self,
        built: Built,
        case: Case,
        inputs: Sequence[Sequence[Path]],
        protocol: MeasureProtocol,
        rerun: int = 0,
    ) -> RunOutput | Failure:
        if rerun == 1:
            self.clash.wait(0.2)
        return super().run(built, case, inputs, protocol, rerun)


def test_what_is_measured_again_waits_for_the_run_on_other_values(spec: OpSpec, tmp_path: Path) -> None:
    device, backend = OneDevice(), SlowOnOtherValues(tmp_path / "cache")
    backend.clash = device.clash
    request = make_request(spec, "latency: 50", "floor: 80", case_ids=("large", "small"))
    data = CaseDataCache(tmp_path / "case_data", "harness")
    evaluate(request, spec, backend, oracle_for(spec), data, device=device, best_us=1.0)
    assert ("small", 1) in backend.reruns
    assert backend.reruns[-1][1] == 2
    assert not device.clash.is_set()


def test_a_candidate_that_fails_does_not_wait_for_other_values(
    spec: OpSpec, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle, failed = oracle_for(spec), threading.Event()
    request = make_request(spec, "fail_build: build_error")
    draw, drawn = oracle.inputs, []

    def inputs(case: Case, seed: int) -> Sequence[Sequence[Array]]:
        if seed == fresh_seed(request):
            failed.wait(180.0)
            drawn.append(seed)
        return draw(case, seed)

    monkeypatch.setattr(oracle, "inputs", inputs)
    data = CaseDataCache(backend.scratch_dir.parent / "case_data", "harness")
    assert evaluate(request, spec, backend, oracle, data).status is Status.BUILD_ERROR
    assert drawn == []
    failed.set()
