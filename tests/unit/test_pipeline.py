"""The pipeline, the service around it and the in-process evaluator, on the fake backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from fake_backend import FakeBackend, make_operator, make_request

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.records import EvalResult, MeasureProtocol, OpSpec, Phase
from ascend_gym.core.status import Status, rule_of
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon import case_runner, processors, second_look
from npu_daemon.case_data import CaseDataCache
from npu_daemon.in_process import InProcessEvaluator
from npu_daemon.pipeline import evaluate
from npu_daemon.service import EvaluationService, open_service, result_key


@pytest.fixture
def spec(tmp_path: Path) -> OpSpec:
    return make_operator(tmp_path / "double_it")


@pytest.fixture
def backend(tmp_path: Path) -> FakeBackend:
    return FakeBackend(tmp_path / "cache")


@pytest.fixture
def case_data(tmp_path: Path) -> CaseDataCache:
    return CaseDataCache(tmp_path / "case_data", "harness")


@pytest.fixture
def service(tmp_path: Path, backend: FakeBackend) -> Iterator[EvaluationService]:
    service = open_service(backend, tmp_path / "cache")
    yield service
    service.close()


def run(
    spec: OpSpec, backend: FakeBackend, case_data: CaseDataCache, *directives: str, **fields: object
) -> EvalResult:
    request = make_request(spec, *directives, **fields)
    return evaluate(request, spec, backend, oracle_for(spec), case_data)


def test_a_good_candidate_is_measured_on_every_case(
    spec: OpSpec, backend: FakeBackend, case_data: CaseDataCache
) -> None:
    result = run(spec, backend, case_data, "latency: 12.5", protocol=MeasureProtocol(repeats=3))
    assert result.status is Status.OK
    assert [case.case_id for case in result.cases] == ["small", "large"]
    assert result.cases[0].samples_us == (12.5, 12.5, 12.5)
    assert result.cases[0].accuracy is not None
    assert result.cases[0].accuracy.max_abs_error == 0
    assert result.latency_us == pytest.approx(12.5)
    assert result.charge.evaluations == 1
    assert result.charge.device_seconds == 1.0
    assert (result.seconds.build, result.seconds.run) == (0.5, 1.0)
    assert result.seconds.verify > 0
    assert result.device == backend.describe()
    assert backend.live_runs == 0


@pytest.mark.parametrize(("on_device", "granted"), [(False, 3), (True, 5)])
def test_a_device_is_held_for_runs_and_for_timing_on_it(
    spec: OpSpec,
    backend: FakeBackend,
    case_data: CaseDataCache,
    monkeypatch: pytest.MonkeyPatch,
    on_device: bool,
    granted: int,
) -> None:
    monkeypatch.setattr(processors, "none_waits", lambda: False)  # or else two runs may share the device
    monkeypatch.setattr(second_look, "PICKED_SHARE", 0)
    held = []

    @contextmanager
    def device() -> Iterator[None]:
        held.append(None)
        yield

    backend.measures_on_device = on_device
    evaluate(make_request(spec), spec, backend, oracle_for(spec), case_data, device=device)
    assert len(held) == granted  # a run of each case, and the second look at one


def test_selected_cases_are_run_in_the_order_asked(
    spec: OpSpec, backend: FakeBackend, case_data: CaseDataCache
) -> None:
    result = run(spec, backend, case_data, case_ids=("large", "small"))
    assert [case.case_id for case in result.cases] == ["large", "small"]
    assert [case.case_id for case in run(spec, backend, case_data, case_ids=("large",)).cases] == ["large"]


@pytest.mark.parametrize(
    ("directive", "status", "phase"),
    [
        ("fail_build: build_error", Status.BUILD_ERROR, Phase.BUILD_KERNEL),
        ("fail: tiling_error", Status.TILING_ERROR, Phase.RUN_KERNEL),
        ("fail: runtime_fault", Status.RUNTIME_FAULT, Phase.RUN_KERNEL),
        ("fail: timeout", Status.TIMEOUT, Phase.RUN_KERNEL),
        ("fail: resource_limit", Status.RESOURCE_LIMIT, Phase.RUN_KERNEL),
        ("fail_price: guard_rejected", Status.GUARD_REJECTED, Phase.PRICE),
        ("fail: unsupported", Status.UNSUPPORTED, Phase.RUN_KERNEL),
        ("fail: infra_error", Status.INFRA_ERROR, Phase.RUN_KERNEL),
        ("wrong", Status.INCORRECT, Phase.VERIFY),
    ],
)
def test_a_failing_case_ends_the_evaluation_with_its_status(
    spec: OpSpec,
    backend: FakeBackend,
    case_data: CaseDataCache,
    directive: str,
    status: Status,
    phase: Phase,
) -> None:
    result = run(spec, backend, case_data, directive)
    assert result.status is status
    assert [case.status for case in result.cases] == [status]
    assert result.all_diagnostics[0].phase is phase
    assert result.charge.evaluations == (1 if rule_of(status).charged else 0)
    assert backend.live_runs == 0


def test_wrong_output_says_where_and_how_far(
    spec: OpSpec, backend: FakeBackend, case_data: CaseDataCache
) -> None:
    result = run(spec, backend, case_data, "wrong")
    assert "output y" in result.all_diagnostics[0].message
    assert result.cases[0].accuracy is not None
    assert result.cases[0].accuracy.bad_share > 0.9


@pytest.mark.parametrize("prefix", ["input", "expected"])
@pytest.mark.parametrize("then", ["latency: 1", "fail: runtime_fault"])
def test_a_run_that_changes_its_inputs_or_the_expectation_is_rejected(
    spec: OpSpec,
    backend: FakeBackend,
    case_data: CaseDataCache,
    monkeypatch: pytest.MonkeyPatch,
    prefix: str,
    then: str,
) -> None:
    if prefix == "expected":  # of published values: of own ones it is no file
        monkeypatch.setattr(case_runner, "always_drawn", lambda *_: False)
    result = run(spec, backend, case_data, f"tamper: {prefix}", then)
    assert result.status is Status.GUARD_REJECTED
    assert "read-only" in result.all_diagnostics[0].message
    assert run(spec, backend, case_data).status is Status.OK  # the next evaluation has fresh data


def test_a_chip_that_the_backend_lacks_is_unsupported(
    spec: OpSpec, backend: FakeBackend, case_data: CaseDataCache
) -> None:
    result = run(spec, backend, case_data, protocol=MeasureProtocol(chip="310P"))
    assert result.status is Status.UNSUPPORTED
    assert "310P" in result.all_diagnostics[0].message
    assert backend.built == 0


def test_broken_infrastructure_is_not_charged(
    spec: OpSpec, backend: FakeBackend, case_data: CaseDataCache
) -> None:
    result = run(spec, backend, case_data, "broken")
    assert result.status is Status.INFRA_ERROR
    assert "fell off the bus" in result.all_diagnostics[0].message
    assert result.charge.evaluations == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"case_ids": ("tiny",)}, "no case 'tiny'; cases: ['small', 'large']"),
        ({"case_ids": ("small", "small")}, "repeated"),
        ({"folder_digest": "0" * 64}, "bring both to the same version"),
    ],
)
def test_impossible_requests_are_refused(
    spec: OpSpec,
    backend: FakeBackend,
    case_data: CaseDataCache,
    fields: dict[str, object],
    message: str,
) -> None:
    result = run(spec, backend, case_data, **fields)
    assert result.status is Status.INVALID_REQUEST
    assert message in result.all_diagnostics[0].message
    assert result.charge.evaluations == 0


def test_service_refuses_unknown_operators(service: EvaluationService, spec: OpSpec) -> None:
    unknown = service.answer(make_request(spec, op_id="core/gelo", op_folder=None))
    assert unknown.status is Status.INVALID_REQUEST
    assert "gelu" in unknown.all_diagnostics[0].message
    missing = service.answer(make_request(spec, op_folder="/nowhere"))
    assert missing.status is Status.INVALID_REQUEST


def test_service_answers_an_equal_request_from_its_store(
    service: EvaluationService, spec: OpSpec, backend: FakeBackend
) -> None:
    first = service.answer(make_request(spec))
    again = service.answer(make_request(spec))
    assert (first.cached, again.cached) == (False, True)
    assert again.cases == first.cases
    assert again.charge == first.charge
    assert backend.built == 2
    fresh = service.answer(make_request(spec, use_cache=False))
    assert not fresh.cached
    assert backend.built == 4


def test_service_repeats_what_infrastructure_spoiled(
    service: EvaluationService, spec: OpSpec, backend: FakeBackend
) -> None:
    for _ in range(2):
        result = service.answer(make_request(spec, "broken"))
        assert (result.status, result.cached) == (Status.INFRA_ERROR, False)
    assert backend.built == 2


def test_every_part_that_changes_the_answer_changes_the_key(spec: OpSpec, tmp_path: Path) -> None:
    backend = FakeBackend(tmp_path)
    newer = FakeBackend(tmp_path)
    newer.toolchain = "fake-2"
    base = make_request(spec)
    keys = [
        result_key(base, backend.describe()),
        result_key(base, newer.describe()),
        result_key(base, FakeBackend(tmp_path, chip="910B3").describe()),
        result_key(make_request(spec, "latency: 1"), backend.describe()),
        result_key(make_request(spec, case_ids=("small",)), backend.describe()),
        result_key(make_request(spec, folder_digest="0"), backend.describe()),
        result_key(make_request(spec, protocol=MeasureProtocol(input_seed=1)), backend.describe()),
    ]
    assert len(set(keys)) == len(keys)
    assert result_key(make_request(spec, use_cache=False), backend.describe()) == keys[0]


def test_catalog_follows_a_changed_folder(
    service: EvaluationService, spec: OpSpec, backend: FakeBackend
) -> None:
    assert service.answer(make_request(spec)).status is Status.OK
    (Path(spec.folder) / "reference.py").write_text(
        "def reference(inputs, attributes):\n    return {'y': inputs['x'] * 3.0}\n"
    )
    changed = load_operator(spec.op_id, op_dir=Path(spec.folder))
    assert service.answer(make_request(changed)).status is Status.INCORRECT
    assert service.answer(make_request(spec, "latency: 2")).status is Status.INVALID_REQUEST


def test_case_data_are_generated_once(
    spec: OpSpec, case_data: CaseDataCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = oracle_for(spec)
    case = spec.cases[0]
    first = case_data.obtain(spec, oracle, case, seed=7)
    monkeypatch.setattr(oracle, "inputs", None)
    again = case_data.obtain(spec, oracle, case, seed=7)
    assert again.input_files == first.input_files
    x = np.fromfile(first.input_files[0][0], np.float32).reshape(4, 64)
    np.testing.assert_array_equal(again.expected[0][0], x * 2.0)
    with pytest.raises(TypeError):
        case_data.obtain(spec, oracle, case, seed=8)


def test_a_file_that_was_just_written_is_read_again_unless_runs_are_confined(
    spec: OpSpec, case_data: CaseDataCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = case_data.obtain(spec, oracle_for(spec), spec.cases[0], seed=7)
    digested: list[Path] = []
    monkeypatch.setattr("npu_daemon.case_data.file_digest", lambda path: digested.append(path) or "other")
    assert case_data.unchanged.changed(data.files, confined=True) is None
    assert digested == []
    later = CaseDataCache(tmp_path / "later", "harness")
    for unchanged, confined in ((case_data.unchanged, False), (later.unchanged, True)):
        complaint = unchanged.changed(data.files, confined=confined)
        assert complaint is not None
        assert "read-only" in complaint.message
    assert digested == [data.files[0].path] * 2
    data.files[0].path.chmod(0o644)
    assert case_data.unchanged.changed(data.files, confined=True) is not None


def test_a_case_that_cannot_tell_right_from_wrong_says_so(
    spec: OpSpec, backend: FakeBackend, case_data: CaseDataCache
) -> None:
    manifest = Path(spec.folder) / "op.toml"
    manifest.write_text(manifest.read_text().replace("atol = 1e-6", "atol = 50.0"))
    lax = load_operator(spec.op_id, op_dir=Path(spec.folder))
    result = run(lax, backend, case_data)
    assert result.status is Status.OK
    assert [each.phase for each in result.all_diagnostics] == [Phase.VERIFY, Phase.VERIFY]
    assert "too lax: an output with its second half left at zero" in result.all_diagnostics[0].message


def test_in_process_evaluator_follows_the_protocol(tmp_path: Path, spec: OpSpec) -> None:
    evaluator = InProcessEvaluator(FakeBackend(tmp_path / "b"), tmp_path / "cache")
    first = evaluator.submit(make_request(spec))
    second = evaluator.submit(make_request(spec))
    third = evaluator.submit(make_request(spec, "latency: 3"))
    assert len({first, second, third}) == 3
    evaluator.cancel(second)
    finished = dict(evaluator.poll(0)) | dict(evaluator.poll(0)) | dict(evaluator.poll(0))
    assert finished[first].status is Status.OK
    assert finished[second].status is Status.CANCELLED
    assert finished[third].latency_us == pytest.approx(3)
    assert evaluator.poll(0) == []
    assert evaluator.describe().backend == "fake"
    evaluator.close()
    with pytest.raises(InfrastructureError, match="closed"):
        evaluator.submit(make_request(spec))
