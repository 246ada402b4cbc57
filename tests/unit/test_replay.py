"""Recorded results are served as they were, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker_machine import DEVICE, request_of, result_of
from fake_backend import FakeBackend, make_operator, make_request

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.status import Status
from npu_daemon.replay import ReplayService
from npu_daemon.service import open_service
from npu_daemon.serving import run_broker
from npu_daemon.settings import DaemonSettings
from npu_daemon.store import SqliteResultStore


def test_a_replay_answers_as_the_daemon_did_that_was_recorded(tmp_path: Path) -> None:
    spec = make_operator(tmp_path / "double_it")
    requests = [make_request(spec), make_request(spec, "latency: 7"), make_request(spec, "fail: timeout")]
    recorder = open_service(FakeBackend(tmp_path / "fake"), tmp_path / "cache")
    recorded = [recorder.answer(request) for request in requests]
    replay = ReplayService(tmp_path / "cache" / "results.sqlite", "910B2")
    assert [replay.answer(request) for request in requests] == recorded
    assert replay.describe().backend == "replay of fake"
    assert replay.describe().toolchain_digest == recorder.describe().toolchain_digest
    assert replay.chips() == ("910B2",)
    unknown = replay.answer(make_request(spec, "latency: 8"))
    assert unknown.status is Status.INVALID_REQUEST
    assert "results.sqlite has no result" in unknown.all_diagnostics[0].message
    recorder.close()
    replay.close()


def test_the_newest_of_several_results_counts(tmp_path: Path) -> None:
    store = SqliteResultStore(tmp_path / "r.sqlite")
    request = request_of()
    for key, latency in (("old harness", 1.0), ("new harness", 2.0)):
        result = result_of(request)
        case = result.cases[0].model_copy(update={"samples_us": (latency,)})
        store.put(key, result.model_copy(update={"cases": (case,), "device": DEVICE}))
    store.close()
    assert ReplayService(tmp_path / "r.sqlite", "910B2").answer(request).latency_us == pytest.approx(2.0)


def test_what_cannot_be_replayed_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match="no recording"):
        ReplayService(tmp_path / "nothing", "910B2")
    (tmp_path / "text").write_text("text" * 1000)
    with pytest.raises(MisuseError, match="not a result store"):
        ReplayService(tmp_path / "text", "910B2")
    store = SqliteResultStore(tmp_path / "r.sqlite")
    with pytest.raises(MisuseError, match="holds no results"):
        ReplayService(tmp_path / "r.sqlite", "910B2")
    for number, toolchain in enumerate("ab"):
        device = DEVICE.model_copy(update={"toolchain_digest": toolchain})
        store.put(toolchain, result_of(request_of(f"// {number}")).model_copy(update={"device": device}))
    store.close()
    with pytest.raises(MisuseError, match="1 of fake a, 1 of fake b"):
        ReplayService(tmp_path / "r.sqlite", "910B2")
    with pytest.raises(MisuseError, match="--recording"):
        run_broker(DaemonSettings(backend="replay", cache_dir=tmp_path))
