"""The broker's state machine: invariants after every event, and what each event leads to."""

from __future__ import annotations

import pytest
from broker_machine import DEVICE_SECONDS, INFO, BrokerMachine, new_state, request_of, result_of
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_gym.core.records import Charge, EvalResult
from ascend_gym.core.status import Status
from npu_daemon.broker import events as ev
from npu_daemon.broker import jobs
from npu_daemon.broker.fair_queue import FairQueue, Quota
from npu_daemon.broker.jobs import RecentNames
from npu_daemon.broker.state import CLIENT_GRACE_S, MAX_ATTEMPTS, MAX_FAILED_STARTS, PING_S, BrokerState
from npu_daemon.broker.workforce import LEASE_S
from npu_daemon.pipeline import infra_error

BrokerMachine.TestCase.settings = settings(max_examples=120, stateful_step_count=40)
TestBrokerMachine = BrokerMachine.TestCase

REQUEST = request_of()
RESULT = result_of(REQUEST)
OTHERS = [request_of(f"// {number}") for number in range(8)]


def started(workers: int = 1, devices: int = 1, **fields: object) -> BrokerState:
    """A broker whose workers are ready."""
    state = new_state(workers, devices, **fields)
    for action in state.handle(ev.Start(), 0.0):
        assert isinstance(action, ev.StartWorker)
        state.handle(ev.WorkerReady(action.worker_id, INFO), 0.0)
    return state


def the_job(actions: list[ev.Action]) -> ev.SendJob:
    (job,) = [action for action in actions if isinstance(action, ev.SendJob)]
    return job


def the_reply(actions: list[ev.Action]) -> EvalResult:
    (reply,) = [action for action in actions if isinstance(action, ev.Reply)]
    return reply.result


def answer_of(job: ev.SendJob, **updates: object) -> ev.WorkerResult:
    result = result_of(job.request).model_copy(update=updates)
    return ev.WorkerResult(job.worker_id, job.job_id, job.attempt, result)


def message_of(result: EvalResult) -> str:
    return result.all_diagnostics[0].message


# --- jobs ---


def test_a_request_is_sent_answered_and_timed() -> None:
    state = started()
    job = the_job(state.handle(ev.Submit(b"c", "r1", REQUEST), 1.0))
    state.handle(ev.Submit(b"c", "r2", OTHERS[0]), 2.0)
    first = state.handle(answer_of(job), 5.0)
    assert the_reply(first) == RESULT
    answer = the_reply(state.handle(answer_of(the_job(first)), 6.0))
    assert answer.seconds.queue == 3.0


def test_what_is_on_record_comes_before_what_relies_on_it() -> None:
    state = started()
    accepted = state.handle(ev.Submit(b"c", "r1", REQUEST, tenant="alice"), 0.0)
    assert [type(action) for action in accepted] == [ev.SaveJob, ev.SendJob]
    answered = state.handle(answer_of(the_job(accepted)), 1.0)
    assert [type(action) for action in answered] == [ev.SaveAnswer, ev.Reply]
    assert answered[0] == ev.SaveAnswer(
        ev.Name(b"c", "r1"), RESULT, "alice", Charge(evaluations=1, device_seconds=DEVICE_SECONDS)
    )


def test_submitting_the_same_id_again_is_the_same_job() -> None:
    state = started()
    job = the_job(state.handle(ev.Submit(b"c", "r1", REQUEST), 0.0))
    assert state.handle(ev.Submit(b"c", "r1", REQUEST), 0.0) == []
    state.handle(answer_of(job), 1.0)
    assert the_reply(state.handle(ev.Submit(b"c", "r1", REQUEST), 2.0)) == RESULT
    the_job(state.handle(ev.Submit(b"other", "r1", REQUEST), 2.0))


def test_equal_questions_are_evaluated_once_and_charged_once() -> None:
    state = started(workers=2)
    job = the_job(state.handle(ev.Submit(b"a", "r1", REQUEST, tenant="alice"), 0.0))
    assert [type(action) for action in state.handle(ev.Submit(b"b", "r1", REQUEST, tenant="carl"), 1.0)] == [
        ev.SaveJob
    ]
    own = REQUEST.model_copy(update={"use_cache": False})
    the_job(state.handle(ev.Submit(b"b", "r2", own, tenant="carl"), 1.0))
    actions = state.handle(answer_of(job), 3.0)
    first, second = (action.result for action in actions if isinstance(action, ev.Reply))
    assert (first.cached, second.cached) == (False, True)
    assert second.seconds.queue == 2.0
    assert [action.charge is None for action in actions if isinstance(action, ev.SaveAnswer)] == [False, True]
    assert list(state.book.accounts.tenants) == ["alice"]


def test_a_shared_job_goes_on_for_the_others_when_one_cancels() -> None:
    state = started()
    job = the_job(state.handle(ev.Submit(b"a", "r1", REQUEST), 0.0))
    state.handle(ev.Submit(b"b", "r1", REQUEST), 0.0)
    actions = state.handle(ev.Cancel(b"a", "r1"), 1.0)
    assert the_reply(actions).status is Status.CANCELLED
    assert not any(isinstance(action, ev.KillWorker) for action in actions)
    assert the_reply(state.handle(answer_of(job), 2.0)).charge.evaluations == 1


def test_cancelling_a_running_job_kills_its_worker() -> None:
    state = started()
    job = the_job(state.handle(ev.Submit(b"c", "r1", REQUEST), 0.0))
    actions = state.handle(ev.Cancel(b"c", "r1"), 1.0)
    assert ev.KillWorker(job.worker_id) in actions
    assert the_reply(actions).status is Status.CANCELLED
    assert state.handle(answer_of(job), 1.0) == []


def test_remembered_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "KEPT_ANSWERS", 3)
    state = started()
    for number in range(10):
        state.handle(ev.Submit(b"c", f"r{number}", REQUEST, stored=RESULT), 0.0)
    assert len(state.book.answers) == 3


# --- leases ---


def test_a_silent_worker_loses_its_lease_and_its_late_result_is_refused() -> None:
    state = started(workers=2)
    job = the_job(state.handle(ev.Submit(b"c", "r1", REQUEST), 0.0))
    assert not any(isinstance(action, ev.KillWorker) for action in state.handle(ev.Tick(), LEASE_S - 1))
    actions = state.handle(ev.Tick(), LEASE_S)
    assert ev.KillWorker(job.worker_id) in actions
    retry = the_job(actions)
    assert (retry.job_id, retry.attempt) == (job.job_id, 2)
    assert retry.worker_id != job.worker_id
    assert state.handle(answer_of(job), LEASE_S + 1) == []
    assert state.counts["refused"] == 1
    assert the_reply(state.handle(answer_of(retry), LEASE_S + 1)).status is Status.OK


def test_heartbeats_keep_a_lease() -> None:
    state = started()
    job = the_job(state.handle(ev.Submit(b"c", "r1", REQUEST), 0.0))
    for now_s in range(1, 100, 10):
        state.handle(ev.WorkerBeat(job.worker_id, job.job_id, job.attempt), float(now_s))
        assert [type(action) for action in state.handle(ev.Tick(), now_s + 9.0)] == [ev.Ping]


def test_a_job_that_kills_its_workers_ends_as_infra_error() -> None:
    state = started()
    job = the_job(state.handle(ev.Submit(b"c", "r1", REQUEST), 0.0))
    for _ in range(MAX_ATTEMPTS - 1):
        actions = state.handle(ev.WorkerGone(job.worker_id, "signal 9"), 1.0)
        (start,) = (action for action in actions if isinstance(action, ev.StartWorker))
        job = the_job(state.handle(ev.WorkerReady(start.worker_id, INFO), 2.0))
    answer = the_reply(state.handle(ev.WorkerGone(job.worker_id, "signal 9"), 3.0))
    assert answer.status is Status.INFRA_ERROR
    assert "signal 9" in message_of(answer)
    assert answer.charge.evaluations == 0


def test_infra_error_of_a_worker_is_tried_again() -> None:
    state = started()
    job = the_job(state.handle(ev.Submit(b"c", "r1", REQUEST), 0.0))
    broken = infra_error(REQUEST, "the device fell off the bus")
    for attempt in range(2, MAX_ATTEMPTS + 1):
        job = the_job(state.handle(ev.WorkerResult(job.worker_id, job.job_id, job.attempt, broken), 1.0))
        assert job.attempt == attempt
    last = state.handle(ev.WorkerResult(job.worker_id, job.job_id, job.attempt, broken), 2.0)
    assert message_of(the_reply(last)) == message_of(broken)


def test_the_next_job_goes_to_the_worker_that_had_the_last_one() -> None:
    state = started(workers=3)
    holders = []
    for number, request in enumerate([REQUEST, *OTHERS[:2]]):
        job = the_job(state.handle(ev.Submit(b"c", f"r{number}", request), 0.0))
        holders.append(job.worker_id)
        state.handle(answer_of(job), 1.0)
    assert len(set(holders)) == 1


def test_what_failed_on_one_worker_is_tried_on_another() -> None:
    state = started(workers=2)
    job = the_job(state.handle(ev.Submit(b"c", "r1", REQUEST), 0.0))
    broken = infra_error(REQUEST, "no space left on device")
    again = the_job(state.handle(ev.WorkerResult(job.worker_id, job.job_id, job.attempt, broken), 1.0))
    assert again.attempt == 2
    assert again.worker_id != job.worker_id


# --- fairness, priorities, quotas, budgets ---


def served(state: BrokerState, seconds: dict[str, float], now_s: float = 0.0) -> list[str]:
    """Let one worker serve all that waits; the first letter of a request id says how long it takes."""
    order: list[str] = []
    (worker,) = state.workforce.workers.values()
    while worker.lease is not None:
        job = state.book.jobs[worker.lease.job_id]
        order.append(job.payer.request_id)
        now_s += seconds[order[-1][0]]
        state.handle(
            ev.WorkerResult(worker.worker_id, job.job_id, job.attempt, result_of(job.request)), now_s
        )
    return order


def test_within_a_tenant_by_priority_then_first_come_first_served() -> None:
    state = started()
    for number, priority in enumerate([0, 0, 5, -5, 5]):
        request = request_of(f"// {number}", priority=priority)
        state.handle(ev.Submit(b"c", f"r{number}", request), 0.0)
    assert served(state, {"r": 1.0}) == ["r0", "r2", "r4", "r1", "r3"]


def test_an_urgent_request_equal_to_a_waiting_one_makes_it_urgent() -> None:
    state = started()
    for number in range(4):
        state.handle(ev.Submit(b"c", f"r{number}", request_of(f"// {number}")), 0.0)
    state.handle(ev.Submit(b"c", "urgent", request_of("// 3", priority=5)), 0.0)
    state.handle(ev.Submit(b"d", "elsewhere", request_of("// 2", priority=9), tenant="d"), 0.0)
    state.handle(ev.Submit(b"c", "less", request_of("// 3", priority=1)), 0.0)
    assert served(state, {"r": 1.0}) == ["r0", "r3", "r1", "r2"]


def test_a_full_disk_keeps_jobs_waiting_and_clients_too() -> None:
    state = started()
    assert state.handle(ev.Submit(b"c", "r0", request_of("// 0")), 0.0)
    state.handle(ev.Room("full"), 0.0)
    (busy,) = state.handle(ev.Submit(b"c", "r1", request_of("// 1")), 0.0)
    assert isinstance(busy, ev.Busy)
    assert busy.reason == "full; submit again later"
    assert served(state, {"r": 1.0}) == ["r0"], "what runs is finished"
    state.handle(ev.Room(), 0.0)
    state.handle(ev.Submit(b"c", "r1", request_of("// 1")), 0.0)
    assert served(state, {"r": 1.0}) == ["r1"]
    assert state.counts["disk_full"] == 1


def test_a_tenant_with_long_jobs_gets_no_more_of_the_worker_than_others() -> None:
    state = started()
    for number in range(4):
        state.handle(ev.Submit(b"a", f"long{number}", request_of(f"// a{number}"), tenant="a"), 0.0)
    for number in range(8):
        state.handle(ev.Submit(b"b", f"short{number}", request_of(f"// b{number}"), tenant="b"), 0.0)
    order = served(state, {"l": 4.0, "s": 1.0})
    assert order[:6] == ["long0", "short0", "short1", "short2", "short3", "long1"]
    assert len(order) == 12


def test_who_comes_back_from_idling_has_saved_nothing_up() -> None:
    state = started()
    state.handle(ev.Submit(b"a", "a0", request_of("// a0"), tenant="a"), 0.0)
    served(state, {"a": 100.0})
    for number in range(3):
        state.handle(ev.Submit(b"a", f"a{number + 1}", request_of(f"// a{number + 1}"), tenant="a"), 100.0)
        state.handle(ev.Submit(b"b", f"b{number}", request_of(f"// b{number}"), tenant="b"), 100.0)
    assert served(state, {"a": 1.0, "b": 1.0}, 100.0) == ["a1", "b0", "a2", "b1", "a3", "b2"]


def test_a_tenant_has_no_more_workers_or_places_than_its_quota() -> None:
    state = started(workers=3)
    sent = [state.handle(ev.Submit(b"b", f"r{n}", OTHERS[n], tenant="bob"), 0.0) for n in range(4)]
    assert [sum(isinstance(action, ev.SendJob) for action in actions) for actions in sent] == [1, 0, 0, 0]
    assert isinstance(sent[3][0], ev.Busy)
    assert "bob" in sent[3][0].reason
    joins = state.handle(ev.Submit(b"x", "r9", OTHERS[1], tenant="bob"), 0.0)
    assert isinstance(joins[0], ev.SaveJob), "an equal question takes no place"
    the_job(state.handle(ev.Submit(b"a", "r0", REQUEST, tenant="alice"), 0.0))


@pytest.mark.parametrize("tenant", ["bob", "alice"])
def test_when_device_seconds_are_spent_nothing_more_is_evaluated(tenant: str) -> None:
    limit = None if tenant == "bob" else 5 * DEVICE_SECONDS
    state = started(max_device_seconds=limit)
    actions: list[ev.Action] = []
    for number in range(5):
        actions = state.handle(ev.Submit(b"c", f"r{number}", OTHERS[number], tenant=tenant), 0.0)
        if number == 4:
            state.handle(ev.Submit(b"c", "waits", OTHERS[6], tenant=tenant), 0.0)
        actions = state.handle(answer_of(the_job(actions)), 1.0)
    refused = [action.result for action in actions if isinstance(action, ev.Reply)][-1]
    assert refused.request_digest == OTHERS[6].digest
    assert "10 device seconds" in message_of(refused)
    late = the_reply(state.handle(ev.Submit(b"c", "late", OTHERS[7], tenant=tenant), 2.0))
    assert late.status is Status.INFRA_ERROR
    hit = state.handle(ev.Submit(b"c", "hit", OTHERS[7], result_of(OTHERS[7]), tenant), 2.0)
    assert the_reply(hit).status is Status.OK, "what is known costs nothing"


def test_an_empty_fair_queue_has_nobody_next() -> None:
    queue = FairQueue({"a": Quota(max_running=1)})
    assert queue.pop() is None
    assert (len(queue), queue.queued("a"), queue.running("a")) == (0, 0, 0)


class Weight:
    """Something to queue, of so many bytes."""

    tenant = "a"

    def __init__(self, number: int, size_bytes: int) -> None:
        self.job_id, self.size_bytes, self._number = f"job-{number}", size_bytes, number

    def rank(self) -> tuple[int, bool, int]:
        return (0, True, self._number)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3 * 2**20)), max_size=20))
def test_what_waits_takes_no_more_than_it_may(steps: list[tuple[int, int]]) -> None:
    queue = FairQueue({"a": Quota(max_queued=6, max_queued_mib=4.0)})
    waiting: list[Weight] = []
    for number, (step, size_bytes) in enumerate(steps):
        if step == 0 and waiting:
            assert queue.pop() == waiting.pop(0).job_id
        elif step == 1 and waiting:
            queue.remove(waiting.pop())
        elif queue.has_room("a", size_bytes):
            waiting.append(Weight(number, size_bytes))
            queue.push(waiting[-1])
        else:
            total = sum(job.size_bytes for job in waiting)
            assert len(waiting) == 6 or (waiting and total + size_bytes > 4 * 2**20)
    assert list(queue) == [job.job_id for job in waiting]


def test_the_names_that_were_charged_are_forgotten_in_their_order() -> None:
    names = [ev.Name(b"c", f"r{number}") for number in range(5)]
    recent = RecentNames(kept=3)
    for name in names:
        assert name not in recent
        recent.add(name)
        assert name in recent
    assert [name in recent for name in names] == [False, False, True, True, True]


# --- devices ---


def test_building_holds_no_device_and_running_holds_one() -> None:
    state = started(workers=3, devices=1)
    jobs_sent = [the_job(state.handle(ev.Submit(b"c", f"r{n}", OTHERS[n]), 0.0)) for n in range(3)]
    leases = [(job.worker_id, job.job_id, job.attempt) for job in jobs_sent]
    assert state.handle(ev.DeviceWanted(*leases[1]), 1.0) == [ev.GrantDevice(*leases[1], device=0)]
    assert state.handle(ev.DeviceWanted(*leases[0]), 1.0) == []
    assert state.handle(ev.DeviceWanted(*leases[2]), 1.0) == []
    assert state.handle(ev.DeviceFreed(*leases[1]), 3.0) == [ev.GrantDevice(*leases[0], device=0)]
    died = state.handle(ev.WorkerGone(leases[0][0], "signal 9"), 4.0)
    assert ev.GrantDevice(*leases[2], device=0) in died
    assert state.workforce.devices.held_seconds == 3.0


# --- workers that come and go ---


def test_workers_that_never_start_stop_the_daemon_with_the_reason() -> None:
    state = new_state(workers=1)
    actions = state.handle(ev.Start(), 0.0)
    state.handle(ev.Submit(b"c", "r1", REQUEST), 0.0)
    for _ in range(MAX_FAILED_STARTS):
        (start,) = (action for action in actions if isinstance(action, ev.StartWorker))
        actions = state.handle(ev.WorkerGone(start.worker_id, "g++ is missing"), 1.0)
    assert the_reply(actions).status is Status.INFRA_ERROR
    assert actions[-1] == ev.Stop("no worker could be started: g++ is missing")
    assert state.handle(ev.Tick(), 2.0) == []


def test_workers_that_are_killed_while_they_start_are_started_again() -> None:
    state = new_state(workers=1)
    actions = state.handle(ev.Start(), 0.0)
    for _ in range(3 * MAX_FAILED_STARTS):
        (start,) = (action for action in actions if isinstance(action, ev.StartWorker))
        actions = state.handle(ev.WorkerGone(start.worker_id, "SIGKILL", killed=True), 1.0)
    assert not state.stopped


def test_workers_are_added_at_once_and_removed_when_they_have_no_job() -> None:
    state = started(workers=2)
    busy = [the_job(state.handle(ev.Submit(b"c", f"r{n}", OTHERS[n]), 0.0)) for n in range(2)]
    assert [type(action) for action in state.handle(ev.Resize(3), 1.0)] == [ev.StartWorker]
    shrunk = state.handle(ev.Resize(1), 2.0)
    assert [type(action) for action in shrunk] == [ev.KillWorker], "the one that is only starting"
    finished = state.handle(answer_of(busy[0]), 3.0)
    assert ev.KillWorker(busy[0].worker_id) in finished
    last = state.handle(answer_of(busy[1]), 4.0)
    assert not any(isinstance(action, ev.KillWorker) for action in last)


# --- clients that come and go ---


def test_a_client_that_comes_back_in_time_finds_its_jobs() -> None:
    state = started()
    job = the_job(state.handle(ev.Submit(b"c", "r1", REQUEST), 0.0))
    state.handle(ev.ClientGone(b"c"), 1.0)
    state.handle(ev.WorkerBeat(job.worker_id, job.job_id, 1), CLIENT_GRACE_S)
    state.handle(ev.Tick(), CLIENT_GRACE_S)
    state.handle(answer_of(job), CLIENT_GRACE_S + 0.5)
    assert the_reply(state.handle(ev.Submit(b"c", "r1", REQUEST), CLIENT_GRACE_S + 0.9)) == RESULT


def test_jobs_of_a_client_that_stays_away_are_stopped() -> None:
    state = started()
    job = the_job(state.handle(ev.Submit(b"c", "r1", REQUEST), 0.0))
    state.handle(ev.ClientGone(b"c"), 1.0)
    for now_s in (15.0, 29.0, 43.0, 57.0):
        state.handle(ev.WorkerBeat(job.worker_id, job.job_id, 1), now_s)
    assert ev.KillWorker(job.worker_id) in state.handle(ev.Tick(), CLIENT_GRACE_S + 2)
    assert state.book.jobs == {}


def test_clients_with_jobs_hear_from_the_broker() -> None:
    state = started()
    state.handle(ev.Submit(b"c", "r1", REQUEST), 0.0)
    state.handle(ev.Submit(b"d", "r1", REQUEST), 0.0)
    assert state.handle(ev.Tick(), PING_S) == [ev.Ping(b"c"), ev.Ping(b"d")]
    assert state.handle(ev.Tick(), PING_S + 0.5) == []


# --- the end, and the beginning after it ---


def test_drain_finishes_what_runs_and_refuses_the_rest() -> None:
    state = started()
    job = the_job(state.handle(ev.Submit(b"c", "r1", REQUEST), 0.0))
    state.handle(ev.Submit(b"c", "r2", OTHERS[0]), 0.0)
    assert the_reply(state.handle(ev.Drain(), 1.0)).status is Status.INFRA_ERROR
    assert "shutting down" in message_of(the_reply(state.handle(ev.Submit(b"c", "r3", REQUEST), 1.0)))
    actions = state.handle(answer_of(job), 2.0)
    assert the_reply(actions) == RESULT
    assert actions[-1] == ev.Stop()


def test_a_broker_with_a_journal_leaves_what_waits_to_the_next_one() -> None:
    state = started(keeps_jobs=True)
    job = the_job(state.handle(ev.Submit(b"c", "r1", REQUEST), 0.0))
    state.handle(ev.Submit(b"c", "r2", OTHERS[0]), 0.0)
    assert state.handle(ev.Drain(), 1.0) == []
    actions = state.handle(answer_of(job), 2.0)
    assert [type(action) for action in actions] == [ev.SaveAnswer, ev.Reply, ev.Stop]


def test_drain_of_an_idle_daemon_stops_at_once() -> None:
    assert started().handle(ev.Drain(), 0.0) == [ev.Stop()]


def test_what_an_earlier_broker_left_is_gone_on_with_and_not_charged_again() -> None:
    name, done = ev.Name(b"c", "r1"), ev.Name(b"c", "r0")
    charge = Charge(evaluations=1, device_seconds=DEVICE_SECONDS)
    state = new_state(workers=1, keeps_jobs=True)
    saved = ev.SavedCharge(done, "alice", charge)
    lost = ev.SavedCharge(name, "alice", charge)  # charged, but the answer is not on record
    state.handle(ev.Restore((ev.SavedJob(name, "alice", REQUEST),), ((done, RESULT),), (saved, lost)), 0.0)
    (start,) = state.handle(ev.Start(), 0.0)
    assert isinstance(start, ev.StartWorker)
    job = the_job(state.handle(ev.WorkerReady(start.worker_id, INFO), 1.0))
    assert state.handle(ev.Submit(*name, REQUEST, tenant="alice"), 1.0) == []
    answered = state.handle(answer_of(job), 2.0)
    assert [action.charge for action in answered if isinstance(action, ev.SaveAnswer)] == [None]
    assert the_reply(state.handle(ev.Submit(*done, REQUEST, tenant="alice"), 3.0)) == RESULT
    assert state.book.accounts.tenants["alice"].evaluations == 2


@pytest.mark.parametrize("keeps_jobs", [False, True])
def test_a_broker_that_gives_up_takes_back_job_and_device_of_a_worker_that_works(keeps_jobs: bool) -> None:
    state = started(1, 1, keeps_jobs=keeps_jobs)
    state.handle(ev.Resize(2), 0.0)
    job = the_job(state.handle(ev.Submit(b"alice", "r", REQUEST, None, "alice"), 0.0))
    state.handle(ev.DeviceWanted(job.worker_id, job.job_id, job.attempt), 0.0)
    assert state.workforce.devices.holders == {job.worker_id: 0}
    for number in range(2, 2 + MAX_FAILED_STARTS):
        actions = state.handle(ev.WorkerGone(f"worker-{number}", "ended", False), 0.0)
    assert isinstance(actions[-1], ev.Stop)
    assert state.workforce.devices.holders == {}
    assert list(state.book.queue) == ([job.job_id] if keeps_jobs else [])
