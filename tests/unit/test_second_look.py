"""What a candidate that passed has to pass again, on the fake backend."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_backend import FakeBackend, make_operator, make_request

from ascend_gym.core.protocols import Built, Failure, RunOutput
from ascend_gym.core.records import Case, CaseResult, Diagnostic, EvalResult, MeasureProtocol, OpSpec, Phase
from ascend_gym.core.status import Status
from ascend_gym.suite.inputs import Array
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon import own_values, processors, second_look
from npu_daemon.case_data import CaseData, CaseDataCache
from npu_daemon.own_values import always_drawn, own_seed
from npu_daemon.pipeline import OWN_FAULT, evaluate
from npu_daemon.second_look import DomainRun
from npu_daemon.service import EvaluationService, open_service

DOMAIN = ("small~domain", 1)
ONCE = [("small", 0), ("large", 0), DOMAIN]


@pytest.fixture(autouse=True)
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """No processor is idle, whatever else runs on this machine: the order of runs is fixed."""
    monkeypatch.setattr(processors, "none_waits", lambda: False)
    monkeypatch.setattr(second_look, "PICKED_SHARE", 0)


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> None:
    """All cases count as large, with answers that fit no source; nobody is picked by chance."""
    monkeypatch.setattr(own_values, "OWN_TRAFFIC_BYTES", 0)
    monkeypatch.setattr(own_values, "FEW_ANSWERS_BYTES", 0)
    monkeypatch.setattr(second_look, "PICKED_SHARE", 0)


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


def run(spec: OpSpec, backend: FakeBackend, *directives: str, **how: Any) -> EvalResult:
    best_us = how.pop("best_us", None)
    assert best_us is None or isinstance(best_us, float)
    request = make_request(spec, *directives, **how)
    folder = backend.scratch_dir.parent / "case_data"
    data = CaseDataCache(folder, "harness")
    result = evaluate(request, spec, backend, oracle_for(spec), data, best_us=best_us)
    assert list(folder.glob("drawn-*")) == []  # nothing that was drawn for it is left
    return result


def first_message(result: EvalResult) -> str:
    return result.all_diagnostics[0].message


def test_every_candidate_is_run_on_its_domain_at_other_addresses(spec: OpSpec, backend: FakeBackend) -> None:
    result = run(spec, backend, best_us=1.0)
    assert result.status is Status.OK
    assert backend.reruns == ONCE
    assert [case.case_id for case in result.cases] == ["small", "large"]
    assert result.charge.device_seconds == 1.0  # the second look is not charged
    assert result.all_diagnostics == ()


@pytest.mark.parametrize("directive", ["wrong_in_domain", "wrong_later"])
@pytest.mark.parametrize("best_us", [1.0, 1000.0])
def test_what_is_wrong_in_the_domain_is_refused(
    spec: OpSpec, backend: FakeBackend, directive: str, best_us: float
) -> None:
    result = run(spec, backend, directive, best_us=best_us)
    assert result.status is Status.INCORRECT
    assert first_message(result).startswith(
        "passed its cases, but not the values of the operator's domain at other addresses: output y"
    )
    assert [(case.case_id, case.status) for case in result.cases] == [("small", Status.INCORRECT)]
    assert result.charge.evaluations == 1
    assert backend.live_runs == 0


@pytest.mark.parametrize(("directive", "status"), [("", Status.OK), ("wrong_in_domain", Status.INCORRECT)])
@pytest.mark.parametrize("best_us", [1.0, 1000.0])
@pytest.mark.parametrize("is_dear", [False, True])
def test_a_request_that_leaves_the_smallest_case_out_is_judged_on_a_domain(
    spec: OpSpec,
    backend: FakeBackend,
    directive: str,
    status: Status,
    best_us: float,
    is_dear: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if is_dear:
        monkeypatch.setattr("npu_daemon.own_values.OWN_TRAFFIC_BYTES", 0)
        monkeypatch.setattr("npu_daemon.own_values.FEW_ANSWERS_BYTES", 0)
    result = run(spec, backend, directive, best_us=best_us, case_ids=("large",))
    assert result.status is status
    assert backend.reruns[:2] == [("large", 0), DOMAIN if is_dear else ("large~domain", 1)]
    assert backend.built == (2 if is_dear else 1)
    assert [case.case_id for case in result.cases] == ["large"]
    assert backend.live_runs == 0


def test_a_fault_of_the_operators_own_sources_is_told_as_such(spec: OpSpec, backend: FakeBackend) -> None:
    broken = spec.baseline.rewritten(kernel=make_request(spec, "wrong_in_domain").candidate.kernel_text)
    own = spec.model_copy(update={"baseline": broken})
    told = [each.message for each in run(own, backend, "wrong_in_domain").all_diagnostics]
    assert told[0].startswith("passed its cases, but not the values of the operator's domain")
    assert told[-1] == OWN_FAULT
    assert OWN_FAULT not in [each.message for each in run(spec, backend, "wrong_in_domain").all_diagnostics]


def test_own_values_follow_from_all_that_the_candidate_could_hold_answers_in(spec: OpSpec) -> None:
    case = spec.cases[0]
    base = make_request(spec, "a candidate")
    seeds = [
        own_seed(base, case, "launch"),
        own_seed(make_request(spec, "a candidate", ""), case, "launch"),
        own_seed(base.model_copy(update={"candidate": spec.baseline}), case, "launch"),
        own_seed(base, spec.cases[1], "launch"),
        own_seed(base, case, "another launch"),
        own_seed(make_request(spec, "a candidate", protocol=MeasureProtocol(input_seed=1)), case, "launch"),
        own_seed(base.model_copy(update={"folder_digest": "0" * 64}), case, "launch"),
    ]
    assert len(set(seeds)) == len(seeds)
    assert seeds[0] == own_seed(make_request(spec, "a candidate"), case, "launch")


def test_own_values_are_the_same_in_every_cache_and_others_for_each_candidate(
    spec: OpSpec, tmp_path: Path
) -> None:
    values = []
    for folder, directive in (("one", "a"), ("other", "a"), ("one", "b")):
        backend = FakeBackend(tmp_path / folder / "scratch")
        service = open_service(backend, tmp_path / folder)
        assert service.answer(make_request(spec, directive)).status is Status.OK
        service.close()
        values.append(dict(zip(backend.reruns, backend.first_values, strict=True)))
    assert values[0] == values[1]
    assert all(values[0][run] != values[2][run] for run in ONCE)


def test_which_cases_are_always_drawn() -> None:
    add, loss, gather = load_operator("add"), load_operator("mse_loss"), load_operator("gather")
    assert not always_drawn(add, add.case("fp16_8192x2048"))  # 96 MiB, and as many answers as elements
    assert all(always_drawn(loss, case) for case in loss.cases)  # one answer
    assert all(always_drawn(gather, case) for case in gather.cases)  # its indices choose what is read
    assert any(always_drawn(add, case) for case in add.cases)


def test_a_champion_is_measured_again_on_every_case(spec: OpSpec, backend: FakeBackend) -> None:
    assert run(spec, backend, "latency: 50", best_us=100.0).status is Status.OK
    assert backend.reruns == [*ONCE, ("small", 2), ("small~domain", 3), ("large", 2), ("large~domain", 3)]


def test_a_champion_is_run_on_own_values_of_what_was_published(
    spec: OpSpec, backend: FakeBackend, published: None
) -> None:
    result = run(spec, backend, "latency: 50", best_us=100.0)
    looks = [(case, rerun) for case in ("small", "large") for rerun in (2, 0, 3)]
    assert backend.reruns == [*ONCE, *((case + "~domain" * (rerun == 3), rerun) for case, rerun in looks)]
    values = dict(zip(enumerate(backend.reruns), backend.first_values, strict=True))
    assert values[0, ("small", 0)] == values[3, ("small", 2)] != values[4, ("small", 0)]
    assert result.charge.device_seconds == 1.0


@pytest.mark.parametrize(("share", "looks"), [(0.0, 0), (1.0, 4)])
def test_a_share_of_ordinary_candidates_is_picked_for_the_same(
    spec: OpSpec,
    backend: FakeBackend,
    published: None,
    monkeypatch: pytest.MonkeyPatch,
    share: float,
    looks: int,
) -> None:
    monkeypatch.setattr(second_look, "PICKED_SHARE", share)
    assert run(spec, backend, best_us=1.0).status is Status.OK
    closer = [("small", 0), ("small~domain", 3), ("large", 0), ("large~domain", 3)]
    assert backend.reruns == [*ONCE, *closer[:looks]]


def test_the_same_are_picked_on_every_host(spec: OpSpec) -> None:
    shares = [second_look._share(make_request(spec, f"number: {number}")) for number in range(400)]
    assert shares == [second_look._share(make_request(spec, f"number: {number}")) for number in range(400)]
    assert 30 <= sum(share < 1 / 8 for share in shares) <= 70


@pytest.mark.parametrize("best_us", [1.0, 1000.0])
@pytest.mark.parametrize(
    ("directive", "latency_us"), [("latency_on_own: 120", 120), ("latency_on_own: 80", 100)]
)
def test_who_does_less_for_published_values_is_paid_as_for_its_own(
    spec: OpSpec,
    backend: FakeBackend,
    published: None,
    monkeypatch: pytest.MonkeyPatch,
    best_us: float,
    directive: str,
    latency_us: float,
) -> None:
    monkeypatch.setattr(second_look, "PICKED_SHARE", 1.0)
    result = run(spec, backend, directive, best_us=best_us)
    assert [case.latency_us for case in result.cases] == [latency_us, latency_us]
    told = "took 100 us on published values and 120 us on values drawn for it alone" in str(result)
    assert told == (latency_us == 120)


@pytest.mark.parametrize("best_us", [1.0, 1000.0])
def test_who_is_right_on_published_values_only_is_refused(
    spec: OpSpec, backend: FakeBackend, published: None, monkeypatch: pytest.MonkeyPatch, best_us: float
) -> None:
    monkeypatch.setattr(second_look, "PICKED_SHARE", 1.0)
    result = run(spec, backend, "wrong_on_own", best_us=best_us)
    assert (result.status, result.latency_us) == (Status.INCORRECT, None)
    assert first_message(result).startswith(
        "passed on published values, but not on values drawn for it alone: "
    )


def test_inputs_that_decide_how_much_work_there_is_are_shared(spec: OpSpec, backend: FakeBackend) -> None:
    shared = spec.model_copy(update={"shared_inputs": ("x",)})
    for directive in ("a", "b"):
        assert run(shared, backend, directive, best_us=1.0).status is Status.OK
    values = dict(zip(enumerate(backend.reruns), backend.first_values, strict=True))
    assert values[0, ("small", 0)] == values[3, ("small", 0)]
    assert values[2, DOMAIN] != values[5, DOMAIN]


def test_of_two_latencies_of_a_champion_the_slower_counts(spec: OpSpec, backend: FakeBackend) -> None:
    result = run(spec, backend, "latency: 50", "latency_later: 80", best_us=100.0)
    assert [case.latency_us for case in result.cases] == [80.0, 80.0]
    assert first_message(result).startswith("measured twice, 50 us and 80 us")
    lucky = run(spec, backend, "latency: 50", "latency_later: 40", best_us=100.0)
    assert [case.latency_us for case in lucky.cases] == [50.0, 50.0]


def test_what_is_drawn_costs_no_draw_of_a_candidate_that_does_not_build(
    spec: OpSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unbuildable(FakeBackend):
        def build(self, spec, case, candidate, protocol, on_launch=lambda _: None):  # type: ignore[no-untyped-def]
            return Failure.of(Status.BUILD_ERROR, Phase.BUILD_KERNEL, "no")

    oracle, drawn = oracle_for(spec), []
    draw = oracle.inputs
    monkeypatch.setattr(oracle, "inputs", lambda case, seed: drawn.append(seed) or draw(case, seed))
    backend = Unbuildable(tmp_path / "cache")
    data = CaseDataCache(tmp_path / "case_data", "harness")
    assert evaluate(make_request(spec), spec, backend, oracle, data).status is Status.BUILD_ERROR
    assert drawn == [0]  # the published values, once for all candidates


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


def test_what_chance_explains_keeps_its_first_latency(spec: OpSpec, backend: FakeBackend) -> None:
    noisy = MeasureProtocol(noise=0.05)
    result = run(spec, backend, "latency: 50", "latency_later: 59", best_us=100.0, protocol=noisy)
    assert [case.latency_us for case in result.cases] == [50.0, 50.0]
    assert result.all_diagnostics == ()
    beyond = run(spec, backend, "latency: 50", "latency_later: 61", best_us=100.0, protocol=noisy)
    assert [case.latency_us for case in beyond.cases] == [61.0, 61.0]


def test_a_latency_below_the_floor_is_measured_again_and_not_paid(spec: OpSpec, backend: FakeBackend) -> None:
    result = run(spec, backend, "latency: 5", "floor: 8")
    assert backend.reruns[2:] == [DOMAIN, ("small", 2)]
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
    assert looks == [7, 7, 3, 7]
    backend.reruns.clear()
    alone = make_request(spec, "latency: 200", case_ids=("small",))
    assert service.answer(alone).status is Status.OK  # another question has another champion
    assert backend.reruns == [("small", 0), DOMAIN, ("small", 2), ("small~domain", 3)]


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
    assert beside.reruns == alone.reruns == ONCE
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
    assert DOMAIN in backend.reruns
    assert backend.reruns[-1][1] == 2
    assert not device.clash.is_set()


def test_nothing_of_an_evaluation_waits_for_the_garbage_collector(spec: OpSpec, backend: FakeBackend) -> None:
    """Values of cases would: workers grew by hundreds of megabytes before Python looked for rings."""
    run(spec, backend, best_us=1.0)
    gc.collect()
    gc.disable()
    try:
        run(spec, backend, "another", best_us=1.0)
        left = [each for each in gc.get_objects() if isinstance(each, (CaseData, DomainRun))]
    finally:
        gc.enable()
    assert left == []
