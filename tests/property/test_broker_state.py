"""The broker's state machine: invariants after every event, whatever the order of events."""

from __future__ import annotations

from collections import Counter

import pytest
from conftest import make_candidate, ok_result
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ascend_gym.core.records import DeviceInfo, EvalRequest, EvalResult
from ascend_gym.core.status import Status
from npu_daemon import broker_state
from npu_daemon.broker_events import (
    Action,
    Cancel,
    ClientGone,
    Drain,
    Event,
    KillWorker,
    Ready,
    Reply,
    SendJob,
    Start,
    StartWorker,
    Stop,
    Submit,
    Tick,
    WorkerBeat,
    WorkerGone,
    WorkerReady,
    WorkerResult,
)
from npu_daemon.broker_state import LEASE_S, MAX_ATTEMPTS, MAX_FAILED_STARTS, BrokerState, WorkerPhase
from npu_daemon.pipeline import infra_error

DEVICE = DeviceInfo(backend="fake", chip="910B2", toolchain_digest="0", sandbox="none", host="here")
REQUEST = EvalRequest(op_id="core/toy", folder_digest="0", candidate=make_candidate())
RESULT = ok_result(REQUEST, 10.0)

clients = st.sampled_from([b"alice", b"bob"])
request_ids = st.sampled_from([f"r{number}" for number in range(6)])


class BrokerMachine(RuleBasedStateMachine):
    """Plays clients, workers and the clock against the broker, and keeps its own books."""

    def __init__(self) -> None:
        super().__init__()
        self.state = BrokerState(workers_wanted=2)
        self.now_s = 0.0
        self.unanswered: set[tuple[bytes, str]] = set()
        self.answered: set[tuple[bytes, str]] = set()
        self.alive: dict[str, SendJob | None] = {}
        self.past_jobs: list[SendJob] = []
        self.sent: Counter[str] = Counter()
        self.stopped = False
        self.send(Start())

    def send(self, event: Event) -> list[Action]:
        actions = self.state.handle(event, self.now_s)
        for action in actions:
            self.obey(action)
        return actions

    def obey(self, action: Action) -> None:
        if isinstance(action, Reply):
            name = (action.client, action.request_id)
            assert name in self.unanswered or name in self.answered
            self.unanswered.discard(name)
            self.answered.add(name)
        elif isinstance(action, SendJob):
            assert self.alive[action.worker_id] is None, "a worker was given two jobs"
            self.alive[action.worker_id] = action
            self.past_jobs.append(action)
            self.sent[action.job_id] += 1
            assert action.attempt == self.sent[action.job_id] <= MAX_ATTEMPTS
        elif isinstance(action, StartWorker):
            assert action.worker_id not in self.alive, "a worker id was used twice"
            self.alive[action.worker_id] = None
        elif isinstance(action, Stop):
            assert not self.stopped
            self.stopped = True

    def pick(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.state.workers)))

    @rule(client=clients, request_id=request_ids, stored=st.booleans())
    def submit(self, client: bytes, request_id: str, stored: bool) -> None:
        if self.stopped:
            return
        name = (client, request_id)
        again = name in self.answered
        if not again:
            self.unanswered.add(name)
        actions = self.send(Submit(client, request_id, REQUEST, RESULT if stored else None))
        if again:
            assert [type(action) for action in actions if isinstance(action, Reply)] == [Reply]

    @rule(client=clients, request_id=request_ids)
    def cancel(self, client: bytes, request_id: str) -> None:
        waiting = (client, request_id) in self.unanswered
        replies = [action for action in self.send(Cancel(client, request_id)) if isinstance(action, Reply)]
        assert [reply.result.status for reply in replies] == ([Status.CANCELLED] if waiting else [])

    @rule(client=clients)
    def client_gone(self, client: bytes) -> None:
        actions = self.send(ClientGone(client))
        assert not any(isinstance(action, Reply) and action.client == client for action in actions)
        self.unanswered = {name for name in self.unanswered if name[0] != client}
        self.answered = {name for name in self.answered if name[0] != client}

    @precondition(lambda self: self.state.workers and not self.stopped)
    @rule(data=st.data())
    def worker_ready(self, data: st.DataObject) -> None:
        first = self.state.device is None
        actions = self.send(WorkerReady(self.pick(data), DEVICE))
        assert (Ready() in actions) == (first and self.state.device is not None)

    @precondition(lambda self: self.state.workers and not self.stopped)
    @rule(data=st.data(), retried=st.booleans())
    def worker_answers_its_job(self, data: st.DataObject, retried: bool) -> None:
        worker_id = self.pick(data)
        job = self.alive[worker_id]
        if job is None or self.state.workers[worker_id].lease is None:
            return
        result = infra_error(REQUEST, "broken") if retried else RESULT
        self.alive[worker_id] = None
        self.send(WorkerResult(worker_id, job.job_id, job.attempt, result))

    @precondition(lambda self: self.past_jobs)
    @rule(data=st.data())
    def late_or_forged_result_changes_nothing(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.past_jobs))
        worker = self.state.workers.get(job.worker_id)
        lease = worker.lease if worker else None
        if lease is not None and (lease.request_id, lease.attempt) == (job.job_id, job.attempt):
            return
        refused = self.state.refused_messages
        assert self.send(WorkerResult(job.worker_id, job.job_id, job.attempt, RESULT)) == []
        assert self.state.refused_messages == refused + (0 if self.stopped else 1)

    @precondition(lambda self: self.state.workers and not self.stopped)
    @rule(data=st.data())
    def worker_beats(self, data: st.DataObject) -> None:
        worker_id = self.pick(data)
        job = self.alive[worker_id]
        if job is not None:
            assert self.send(WorkerBeat(worker_id, job.job_id, job.attempt)) == []

    @precondition(lambda self: self.state.workers and not self.stopped)
    @rule(data=st.data())
    def worker_dies(self, data: st.DataObject) -> None:
        worker_id = self.pick(data)
        self.alive.pop(worker_id)
        self.send(WorkerGone(worker_id, "killed"))

    @rule(seconds=st.sampled_from([1.0, LEASE_S / 2, LEASE_S]))
    def time_passes(self, seconds: float) -> None:
        self.now_s += seconds
        self.send(Tick())

    @precondition(lambda self: len(self.answered) > 8)
    @rule()
    def drain(self) -> None:
        self.send(Drain())

    @invariant()
    def each_accepted_request_is_one_job_in_one_place(self) -> None:
        state = self.state
        jobs = {(job.client, job.request_id): job for job in state.jobs.values()}
        assert set(jobs) == self.unanswered
        assert {name: job.job_id for name, job in jobs.items()} == state.job_ids
        leased = [worker.lease.request_id for worker in state.workers.values() if worker.lease]
        assert sorted([*state.queue, *leased]) == sorted(state.jobs)

    @invariant()
    def leases_agree_with_jobs_and_phases(self) -> None:
        for worker in self.state.workers.values():
            assert (worker.phase is WorkerPhase.BUSY) == (worker.lease is not None)
            if worker.lease is not None:
                job = self.state.jobs[worker.lease.request_id]
                assert (job.worker_id, job.attempt) == (worker.worker_id, worker.lease.attempt)
                assert worker.lease.deadline_s >= self.now_s
        assert all(1 <= job.attempt <= MAX_ATTEMPTS for job in self.state.jobs.values() if job.worker_id)

    @invariant()
    def no_worker_is_idle_while_jobs_wait(self) -> None:
        idle = [worker for worker in self.state.workers.values() if worker.phase is WorkerPhase.IDLE]
        assert not (idle and self.state.queue)

    @invariant()
    def lost_workers_are_replaced(self) -> None:
        if not self.stopped and not self.state.draining:
            assert len(self.state.workers) == self.state.workers_wanted
        assert self.stopped or set(self.state.workers) <= set(self.alive)

    @invariant()
    def a_stopped_broker_owes_nothing(self) -> None:
        if self.stopped:
            assert not self.unanswered


BrokerMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestBrokerMachine = BrokerMachine.TestCase


def started(workers: int = 1) -> tuple[BrokerState, list[str]]:
    """A broker whose workers are ready, and their ids."""
    state = BrokerState(workers_wanted=workers)
    ids = [action.worker_id for action in state.handle(Start(), 0.0) if isinstance(action, StartWorker)]
    for worker_id in ids:
        state.handle(WorkerReady(worker_id, DEVICE), 0.0)
    return state, ids


def the_job(actions: list[Action]) -> SendJob:
    jobs = [action for action in actions if isinstance(action, SendJob)]
    assert len(jobs) == 1
    return jobs[0]


def the_reply(actions: list[Action]) -> EvalResult:
    replies = [action for action in actions if isinstance(action, Reply)]
    assert len(replies) == 1
    return replies[0].result


def test_a_request_is_sent_answered_and_timed() -> None:
    state, _ = started()
    job = the_job(state.handle(Submit(b"c", "r1", REQUEST), 1.0))
    state.handle(Submit(b"c", "r2", REQUEST), 2.0)
    first = state.handle(WorkerResult(job.worker_id, job.job_id, 1, RESULT), 5.0)
    assert the_reply(first) == RESULT
    second = the_job(first)
    answer = the_reply(state.handle(WorkerResult(second.worker_id, second.job_id, 1, RESULT), 6.0))
    assert answer.seconds.queue == 3.0


def test_first_come_first_served() -> None:
    state, _ = started()
    job = the_job(state.handle(Submit(b"c", "r0", REQUEST), 0.0))
    for number in range(1, 4):
        state.handle(Submit(b"c", f"r{number}", REQUEST), 0.0)
    order = []
    for _ in range(4):
        actions = state.handle(WorkerResult(job.worker_id, job.job_id, 1, RESULT), 1.0)
        order += [action.request_id for action in actions if isinstance(action, Reply)]
        job = next((action for action in actions if isinstance(action, SendJob)), job)
    assert order == ["r0", "r1", "r2", "r3"]


def test_submitting_the_same_id_again_is_the_same_job() -> None:
    state, _ = started()
    job = the_job(state.handle(Submit(b"c", "r1", REQUEST), 0.0))
    assert state.handle(Submit(b"c", "r1", REQUEST), 0.0) == []
    state.handle(WorkerResult(job.worker_id, job.job_id, 1, RESULT), 1.0)
    assert the_reply(state.handle(Submit(b"c", "r1", REQUEST), 2.0)) == RESULT
    the_job(state.handle(Submit(b"other", "r1", REQUEST), 2.0))


def test_a_silent_worker_loses_its_lease_and_its_late_result_is_refused() -> None:
    state, _ = started(workers=2)
    job = the_job(state.handle(Submit(b"c", "r1", REQUEST), 0.0))
    assert state.handle(Tick(), LEASE_S - 1) == []
    actions = state.handle(Tick(), LEASE_S)
    assert KillWorker(job.worker_id) in actions
    retry = the_job(actions)
    assert (retry.job_id, retry.attempt) == (job.job_id, 2)
    assert retry.worker_id != job.worker_id
    assert state.handle(WorkerResult(job.worker_id, job.job_id, 1, RESULT), LEASE_S + 1) == []
    assert the_reply(
        state.handle(WorkerResult(retry.worker_id, job.job_id, 2, RESULT), LEASE_S + 1)
    ).status is (Status.OK)


def test_heartbeats_keep_a_lease() -> None:
    state, _ = started()
    job = the_job(state.handle(Submit(b"c", "r1", REQUEST), 0.0))
    for now_s in range(1, 100, 10):
        state.handle(WorkerBeat(job.worker_id, job.job_id, job.attempt), float(now_s))
        assert state.handle(Tick(), now_s + 9.0) == []


def test_a_job_that_kills_its_workers_ends_as_infra_error() -> None:
    state, _ = started()
    job = the_job(state.handle(Submit(b"c", "r1", REQUEST), 0.0))
    restarted = state.handle(WorkerGone(job.worker_id, "signal 9"), 1.0)
    (start,) = (action for action in restarted if isinstance(action, StartWorker))
    retry = the_job(state.handle(WorkerReady(start.worker_id, DEVICE), 2.0))
    answer = the_reply(state.handle(WorkerGone(retry.worker_id, "signal 9"), 3.0))
    assert answer.status is Status.INFRA_ERROR
    assert "signal 9" in answer.all_diagnostics[0].message
    assert answer.charge.evaluations == 0


def test_infra_error_of_a_worker_is_tried_again() -> None:
    state, _ = started()
    job = the_job(state.handle(Submit(b"c", "r1", REQUEST), 0.0))
    broken = infra_error(REQUEST, "the device fell off the bus")
    retry = the_job(state.handle(WorkerResult(job.worker_id, job.job_id, 1, broken), 1.0))
    assert retry.attempt == 2
    assert the_reply(state.handle(WorkerResult(job.worker_id, job.job_id, 2, broken), 2.0)) == broken


def test_cancelling_a_running_job_kills_its_worker() -> None:
    state, _ = started()
    job = the_job(state.handle(Submit(b"c", "r1", REQUEST), 0.0))
    actions = state.handle(Cancel(b"c", "r1"), 1.0)
    assert KillWorker(job.worker_id) in actions
    assert the_reply(actions).status is Status.CANCELLED
    assert state.handle(WorkerResult(job.worker_id, job.job_id, 1, RESULT), 1.0) == []


def test_workers_that_never_start_stop_the_daemon_with_the_reason() -> None:
    state = BrokerState(workers_wanted=1)
    starts = [action for action in state.handle(Start(), 0.0) if isinstance(action, StartWorker)]
    state.handle(Submit(b"c", "r1", REQUEST), 0.0)
    actions: list[Action] = list(starts)
    for _ in range(MAX_FAILED_STARTS):
        (start,) = (action for action in actions if isinstance(action, StartWorker))
        actions = state.handle(WorkerGone(start.worker_id, "g++ is missing"), 1.0)
    assert the_reply(actions).status is Status.INFRA_ERROR
    assert actions[-1] == Stop("no worker could be started: g++ is missing")
    assert state.handle(Tick(), 2.0) == []


def test_drain_finishes_what_runs_and_refuses_the_rest() -> None:
    state, _ = started()
    job = the_job(state.handle(Submit(b"c", "r1", REQUEST), 0.0))
    state.handle(Submit(b"c", "r2", REQUEST), 0.0)
    assert the_reply(state.handle(Drain(), 1.0)).status is Status.INFRA_ERROR
    assert (
        "shutting down"
        in the_reply(state.handle(Submit(b"c", "r3", REQUEST), 1.0)).all_diagnostics[0].message
    )
    actions = state.handle(WorkerResult(job.worker_id, job.job_id, 1, RESULT), 2.0)
    assert the_reply(actions) == RESULT
    assert actions[-1] == Stop()


def test_drain_of_an_idle_daemon_stops_at_once() -> None:
    state, _ = started()
    assert state.handle(Drain(), 0.0) == [Stop()]


def test_a_full_queue_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_state, "MAX_QUEUED_JOBS", 2)
    state = BrokerState(workers_wanted=1)
    for number in range(2):
        assert state.handle(Submit(b"c", f"r{number}", REQUEST), 0.0) == []
    answer = the_reply(state.handle(Submit(b"c", "r9", REQUEST), 0.0))
    assert answer.status is Status.INFRA_ERROR
    assert "full" in answer.all_diagnostics[0].message


def test_remembered_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_state, "KEPT_ANSWERS", 3)
    state, _ = started()
    for number in range(10):
        state.handle(Submit(b"c", f"r{number}", REQUEST, stored=RESULT), 0.0)
    assert len(state.answers) == 3
