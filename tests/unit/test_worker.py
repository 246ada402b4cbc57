"""The worker's conversation with its broker, with this test in the broker's place."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from conftest import ok_result
from fake_backend import FakeBackend, make_operator, make_request

from ascend_gym.core.codec import MAX_PAYLOAD_BYTES, Kind, WireMessage, decode, encode
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.records import (
    DeviceGrant,
    DeviceInfo,
    Diagnostic,
    EvalRequest,
    EvalResult,
    OpSpec,
    Phase,
)
from ascend_gym.core.result_records import MAX_DIAGNOSTIC_CHARS
from ascend_gym.core.status import Status
from npu_daemon import pipeline
from npu_daemon.case_runner import DeviceGate
from npu_daemon.pipeline import infra_error
from npu_daemon.worker import Worker

TIMEOUT_MS = 180_000
TURN_MS = 50  # where a turn may have nothing to wait for, because all was said in the one before


class BlockingService:
    """Answers when it is allowed to."""

    def __init__(self, device: DeviceInfo) -> None:
        self.device = device
        self.may_finish = threading.Event()
        self.progress: Callable[[], None] | None = None
        self.started = threading.Event()
        self.answer_with: Callable[[EvalRequest], EvalResult] = lambda request: ok_result(request, 5.0)

    def describe(self) -> DeviceInfo:
        return self.device

    def chips(self) -> tuple[str, ...]:
        return (self.device.chip,)

    def answer(self, request: EvalRequest, on_case: Callable[[], None], device: DeviceGate) -> EvalResult:
        self.progress = on_case
        self.started.set()
        assert self.may_finish.wait(TIMEOUT_MS / 1000)
        return self.answer_with(request)

    def answer_on_device(
        self, request: EvalRequest, on_case: Callable[[], None], device: DeviceGate
    ) -> EvalResult:
        with device():
            return BlockingService.answer(self, request, on_case, device)


class FakeBroker:
    """One ROUTER socket that speaks to one worker."""

    def __init__(self, address: str) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.ROUTER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.bind(address)

    def receive(self) -> WireMessage:
        assert self.socket.poll(TIMEOUT_MS), "the worker said nothing"
        peer, *frames = self.socket.recv_multipart()
        assert peer == b"worker-7"
        message = decode(frames)
        assert isinstance(message, WireMessage)
        return message

    def send(self, frames: list[bytes]) -> None:
        self.socket.send_multipart([b"worker-7", *frames])

    def is_silent(self) -> bool:
        return self.socket.poll(0) == 0


@pytest.fixture
def spec(tmp_path: Path) -> OpSpec:
    return make_operator(tmp_path / "double_it")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[BlockingService]:
    service = BlockingService(FakeBackend(tmp_path).describe())
    yield service
    service.may_finish.set()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[FakeBroker]:
    broker = FakeBroker(f"ipc://{tmp_path}/w")
    yield broker
    broker.context.destroy()


@pytest.fixture
def worker(tmp_path: Path, broker: FakeBroker, service: Any) -> Iterator[Worker]:
    worker = Worker(service, f"ipc://{tmp_path}/w", "worker-7")
    worker.announce()
    assert broker.receive().kind is Kind.READY
    yield worker
    service.may_finish.set()
    worker.close()


def start_job(broker: FakeBroker, worker: Worker, request: EvalRequest) -> None:
    broker.send(encode(WireMessage(Kind.JOB, "job-1", 2, request)))
    worker.serve_once(TIMEOUT_MS)


def test_a_job_is_confirmed_then_answered_with_its_id_and_attempt(
    broker: FakeBroker, worker: Worker, service: BlockingService, spec: OpSpec
) -> None:
    request = make_request(spec)
    start_job(broker, worker, request)
    worker.serve_once(0)
    assert broker.receive() == WireMessage(Kind.BEAT, "job-1", 2)
    service.may_finish.set()
    worker.serve_once(TIMEOUT_MS)
    assert broker.receive() == WireMessage(Kind.RESULT, "job-1", 2, ok_result(request, 5.0))
    worker.serve_once(0)
    assert broker.is_silent()


def test_heartbeats_end_when_a_case_takes_longer_than_its_limits_allow(
    broker: FakeBroker,
    worker: Worker,
    service: BlockingService,
    spec: OpSpec,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start_job(broker, worker, make_request(spec))
    worker.serve_once(0)
    assert broker.receive().kind is Kind.BEAT
    monkeypatch.setattr("npu_daemon.worker.case_limit_s", lambda protocol: 0.0)
    worker.serve_once(0)
    assert broker.is_silent()
    monkeypatch.undo()
    assert service.started.wait(TIMEOUT_MS / 1000)
    assert service.progress is not None
    service.progress()
    worker.serve_once(0)
    assert broker.receive().kind is Kind.BEAT


def test_a_result_that_is_too_large_becomes_an_infra_error(
    broker: FakeBroker, worker: Worker, service: BlockingService, spec: OpSpec
) -> None:
    long = Diagnostic(phase=Phase.SERVICE, message="x" * MAX_DIAGNOSTIC_CHARS)
    many = (long,) * (MAX_PAYLOAD_BYTES // MAX_DIAGNOSTIC_CHARS + 1)
    service.answer_with = lambda request: infra_error(request, "").model_copy(update={"diagnostics": many})
    service.may_finish.set()
    start_job(broker, worker, make_request(spec))
    worker.serve_once(TIMEOUT_MS)
    message = broker.receive()
    if message.kind is Kind.BEAT:
        message = broker.receive()
    assert isinstance(message.payload, EvalResult)
    assert message.payload.status is Status.INFRA_ERROR
    assert "cannot be sent" in message.payload.all_diagnostics[0].message


def test_a_second_job_at_the_same_time_is_refused(broker: FakeBroker, worker: Worker, spec: OpSpec) -> None:
    start_job(broker, worker, make_request(spec))
    with pytest.raises(InfrastructureError, match="JOB out of turn"):
        start_job(broker, worker, make_request(spec))


def test_nonsense_from_the_broker_ends_the_worker(broker: FakeBroker, worker: Worker) -> None:
    broker.send([b"nonsense"])
    with pytest.raises(InfrastructureError, match="expected 2 frames"):
        worker.serve_once(TIMEOUT_MS)


def test_a_worker_whose_parent_is_gone_does_not_start() -> None:
    code = "from npu_daemon.broker.worker_processes import die_with_parent; die_with_parent(1 << 30)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "is gone" in ended.stderr


def test_a_device_is_asked_for_waited_for_and_given_back(
    broker: FakeBroker,
    worker: Worker,
    service: BlockingService,
    spec: OpSpec,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service, "answer", service.answer_on_device)
    request = make_request(spec)
    start_job(broker, worker, request)
    worker.serve_once(TIMEOUT_MS)
    messages = [broker.receive()]
    while messages[-1].kind is Kind.BEAT:
        worker.serve_once(0)
        messages.append(broker.receive())
    assert messages[-1] == WireMessage(Kind.WANT, "job-1", 2)
    assert not service.started.is_set()
    broker.send(encode(WireMessage(Kind.GRANT, "job-1", 1, DeviceGrant(device=0))))  # of a lost lease
    monkeypatch.setattr(pipeline, "_TRUSTED_WORK_S", -1e9)
    worker.serve_once(TIMEOUT_MS)
    assert broker.receive().kind is Kind.BEAT, "waiting for a device is no fault of the candidate"
    monkeypatch.undo()
    broker.send(encode(WireMessage(Kind.GRANT, "job-1", 2, DeviceGrant(device=0))))
    worker.serve_once(TIMEOUT_MS)
    assert service.started.wait(TIMEOUT_MS / 1000)
    service.may_finish.set()
    seen: list[Kind] = []
    while Kind.RESULT not in seen:
        worker.serve_once(TURN_MS)
        while not broker.is_silent():
            seen.append(broker.receive().kind)
    assert [kind for kind in seen if kind is not Kind.BEAT] == [Kind.FREED, Kind.RESULT]
