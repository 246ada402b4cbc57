"""Whose references a daemon executes: they are programs of the trusted process."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_backend import FakeBackend, make_operator, make_request

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import (
    DType,
    EvalRequest,
    GivenArray,
    GivenCase,
    GivenOperator,
    MeasureProtocol,
    OpSpec,
)
from ascend_gym.core.status import Status
from ascend_gym.suite.requests import data_request_for
from npu_daemon.operators import OperatorCatalog, TrustedReferences
from npu_daemon.service import open_service
from npu_daemon.serving import WorkerOptions
from npu_daemon.settings import RequestLimits


@pytest.fixture
def spec(tmp_path: Path) -> OpSpec:
    return make_operator(tmp_path / "own" / "double_it")


def test_a_reference_runs_only_where_the_owner_allows_it(spec: OpSpec, tmp_path: Path) -> None:
    request = make_request(spec)
    place, digest = Path(spec.folder), spec.folder_digest
    other_digest = digest[::-1]
    for trusted in (
        None,
        TrustedReferences(folders=(place.parent,)),
        TrustedReferences(folders=(place,)),
        TrustedReferences(digests=frozenset({digest})),
    ):
        assert OperatorCatalog(trusted).resolve(request)[0] == spec
    for trusted in (
        TrustedReferences(),
        TrustedReferences(folders=(tmp_path / "own" / "double",), digests=frozenset({other_digest})),
        TrustedReferences(folders=(place,), barred=(place.parent,)),
        TrustedReferences(digests=frozenset({digest}), barred=(place,)),
    ):
        with pytest.raises(MisuseError, match="--reference-folder"):
            OperatorCatalog(trusted).resolve(request)


def test_a_reference_that_is_refused_has_not_run(spec: OpSpec, tmp_path: Path) -> None:
    mark = tmp_path / "it ran"
    reference = Path(spec.folder) / "reference.py"
    reference.write_text(f"open({str(mark)!r}, 'w').close()\n{reference.read_text()}")
    changed = spec.folder_digest  # the digest that was allowed is not that of what lies there
    trusted = TrustedReferences(digests=frozenset({changed}))
    service = open_service(FakeBackend(tmp_path / "fake"), tmp_path / "cache", trusted=trusted)
    result = service.answer(make_request(spec))
    service.close()
    assert result.status is Status.INVALID_REQUEST
    assert "may execute" in result.diagnostics[0].message
    assert not mark.exists()


def test_links_lead_nowhere(spec: OpSpec, tmp_path: Path) -> None:
    """A link below an allowed folder, and one round the daemon's own folders."""
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "double_it").symlink_to(spec.folder)
    request = make_request(spec, op_folder=str(allowed / "double_it"))
    with pytest.raises(MisuseError, match="may execute"):
        OperatorCatalog(TrustedReferences(folders=(allowed,))).resolve(request)


def test_operators_of_installed_suites_need_no_leave() -> None:
    from ascend_gym.suite.loader import load_operator
    from ascend_gym.suite.requests import request_for

    gelu = load_operator("gelu")
    request = request_for(gelu, gelu.baseline, MeasureProtocol())
    assert OperatorCatalog(TrustedReferences()).resolve(request)[0] == gelu


def test_what_candidates_leave_in_the_cache_is_no_operator(spec: OpSpec, tmp_path: Path) -> None:
    options = WorkerOptions(
        backend="fake_backend:FakeBackend",
        chip="910B2",
        cache_dir=tmp_path / "own",
        cache_limit_bytes=2**30,
        recording=None,
        reference_folders=(tmp_path,),
    )
    service = options.open_service(tmp_path / "private")
    result = service.answer(make_request(spec), lambda: None, _no_device)
    assert "may execute" in result.diagnostics[0].message


class _no_device:
    def __enter__(self) -> None:
        raise AssertionError("nothing should run")

    def __exit__(self, *_: object) -> None:
        return None


def test_an_operator_that_the_daemon_does_not_have_is_judged_by_data(spec: OpSpec, tmp_path: Path) -> None:
    asked = data_request_for(spec, make_request(spec).candidate, MeasureProtocol(), ("small",))
    asked = EvalRequest.model_validate_json(asked.model_dump_json())
    trusted = TrustedReferences()
    backend = FakeBackend(tmp_path / "fake")
    service = open_service(backend, tmp_path / "cache", trusted=trusted)
    for _ in range(2):
        result = service.answer(asked)
        assert result.status is Status.OK, [str(each) for each in result.all_diagnostics]
        assert "the client sent" in result.diagnostics[-1].message
    assert result.cached
    wrong = asked.model_copy(update={"candidate": make_request(spec, "wrong").candidate})
    assert service.answer(EvalRequest.model_validate(wrong.model_dump())).status is Status.INCORRECT
    service.close()


def test_data_cannot_pass_for_an_operator_of_the_daemon(spec: OpSpec) -> None:
    asked = data_request_for(spec, spec.baseline, MeasureProtocol(), ("small",))
    assert asked.given is not None
    fields = {name: getattr(asked, name) for name in type(asked).model_fields}
    (case,) = asked.given.cases
    short = case.inputs[0][0].model_copy(update={"data": case.inputs[0][0].data[:-8]})
    for change in (
        {"op_id": "core/gelu"},
        {"given": None},
        {"folder_digest": spec.folder_digest},
        {"op_folder": spec.folder},
        {"given": GivenOperator(op_type="Other", auto_sync=False, cases=(case,))},
    ):
        with pytest.raises(ValueError, match="data"):
            EvalRequest(**{**fields, **change})
    with pytest.raises(
        ValueError, match=r"expected \[256\] elements, \[1024\] bytes, of x, got \[1020\] bytes"
    ):
        GivenCase(case=case.case, inputs=((short,),), expected=case.expected)
    with pytest.raises(ValueError, match="base64"):
        GivenArray(dtype=DType.INT8, data="?")


def test_requests_ask_for_no_more_than_the_owner_gives(spec: OpSpec, tmp_path: Path) -> None:
    limits = RequestLimits(max_timeout_s=60, max_memory_gib=4)
    service = open_service(FakeBackend(tmp_path / "fake"), tmp_path / "cache", limits=limits)
    for asked in ({"run_timeout_s": 61.0}, {"build_timeout_s": 61.0}, {"memory_limit_bytes": 2**32 + 1}):
        result = service.answer(make_request(spec, protocol=MeasureProtocol(**asked)))  # type: ignore[arg-type]
        assert result.status is Status.INVALID_REQUEST
        assert next(iter(asked)) in result.diagnostics[0].message
    assert service.answer(make_request(spec)).status is Status.OK
    service.close()


@pytest.mark.parametrize(
    "asked",
    [
        {"repeats": 10**9},
        {"run_timeout_s": float("inf")},
        {"build_timeout_s": 1e300},
        {"run_timeout_s": float("nan")},
        {"memory_limit_bytes": 2**70},
    ],
)
def test_a_protocol_that_no_host_can_keep_is_no_protocol(asked: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(asked))):
        MeasureProtocol(**asked)  # type: ignore[arg-type]
