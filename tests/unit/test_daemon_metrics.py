"""The status of a daemon, and its form for Prometheus."""

from __future__ import annotations

import select
from concurrent.futures import ThreadPoolExecutor

import pytest
from broker_machine import INFO, new_state, request_of, result_of
from prometheus_client import CollectorRegistry, generate_latest

from ascend_gym.core.errors import MisuseError
from npu_daemon.broker.events import (
    DeviceWanted,
    SendJob,
    Start,
    StartWorker,
    Submit,
    WorkerReady,
    WorkerResult,
)
from npu_daemon.broker.state import BrokerState
from npu_daemon.broker.status import StatusQuestions, status_of
from npu_daemon.metrics import StatusCollector, serve_metrics

TIMEOUT_S = 180.0


@pytest.fixture
def busy_state() -> BrokerState:
    """Two workers of three ready, one of them on the only device; one job done, one running, one waiting."""
    state = new_state(workers=2)
    first, _ = state.handle(Start(), 0.0)
    assert isinstance(first, StartWorker)
    state.handle(WorkerReady(first.worker_id, INFO), 0.0)
    for number in range(3):
        actions = state.handle(Submit(b"c", f"r{number}", request_of(f"// {number}"), tenant="alice"), 0.0)
        job = next((action for action in actions if isinstance(action, SendJob)), None)
        if job is not None:
            running = job
    done = WorkerResult(running.worker_id, running.job_id, 1, result_of(running.request))
    (job,) = (action for action in state.handle(done, 1.0) if isinstance(action, SendJob))
    state.handle(DeviceWanted(job.worker_id, job.job_id, 1), 1.0)
    return state


def test_the_status_counts_what_there_is(busy_state: BrokerState) -> None:
    status = status_of(busy_state, "ipc:///x", 12.5, {})
    assert (status.queued, status.running, status.devices, status.devices_held) == (1, 1, 1, 1)
    assert status.workers == {"busy": 1, "starting": 1}
    assert status.counts == {"ok": 1}
    (tenant,) = status.tenants
    assert (tenant.tenant, tenant.queued, tenant.running, tenant.evaluations) == ("alice", 1, 1, 1)
    assert tenant.device_seconds == status.charged_device_seconds == 2.0


def test_metrics_are_those_of_the_moment_when_they_are_read(busy_state: BrokerState) -> None:
    registry = CollectorRegistry()
    statuses = [None, status_of(busy_state, "ipc:///x", 12.5, {})]
    registry.register(StatusCollector(lambda: statuses.pop(0)))
    assert generate_latest(registry) == b""
    lines = generate_latest(registry).decode().splitlines()
    for line in (
        "npu_daemon_up_seconds 12.5",
        "npu_daemon_jobs_queued 1.0",
        'npu_daemon_workers{phase="busy"} 1.0',
        'npu_daemon_events_total{event="ok"} 1.0',
        'npu_daemon_charged_device_seconds_total{tenant="alice"} 2.0',
    ):
        assert line in lines


def test_questions_of_other_threads_are_answered_from_the_state_at_that_moment(
    busy_state: BrokerState,
) -> None:
    questions = StatusQuestions()
    seconds = iter((1.0, 2.0, 3.0))

    def answer_one() -> None:
        assert select.select([questions.asked_fd], [], [], TIMEOUT_S)[0]
        questions.answer(lambda: status_of(busy_state, "ipc:///x", next(seconds), {}))

    with ThreadPoolExecutor(1) as other:
        for expected in (1.0, 2.0, 3.0):
            told = other.submit(questions.ask, TIMEOUT_S)
            answer_one()
            status = told.result(TIMEOUT_S)
            assert status is not None
            assert status.up_seconds == expected
    assert not select.select([questions.asked_fd], [], [], 0)[0], "an answered question wakes nobody"


def test_a_question_that_nobody_answers_is_given_up(busy_state: BrokerState) -> None:
    questions = StatusQuestions()
    assert questions.ask(timeout_s=0.01) is None
    questions.answer(lambda: pytest.fail("nobody waits for this answer"))


@pytest.mark.parametrize("address", ["9464", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:99999"])
def test_metrics_need_an_address(address: str) -> None:
    with pytest.raises(MisuseError, match="HOST:PORT"):
        serve_metrics(address, lambda: None)
