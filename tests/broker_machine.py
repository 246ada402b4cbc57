"""A broker played by hypothesis: clients, workers, clock and restarts, with books of its own."""

from __future__ import annotations

from collections import Counter

from conftest import make_candidate, ok_result
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ascend_gym.core.records import Charge, DaemonInfo, DeviceInfo, EvalRequest, EvalResult
from ascend_gym.core.status import Status
from npu_daemon.broker.events import (
    Action,
    Busy,
    Cancel,
    ClientGone,
    DeviceFreed,
    DeviceWanted,
    Drain,
    DropJob,
    Event,
    Expel,
    GrantDevice,
    KillWorker,
    Name,
    Ready,
    Reply,
    Resize,
    Restore,
    Room,
    SaveAnswer,
    SavedCharge,
    SavedJob,
    SaveJob,
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
from npu_daemon.broker.fair_queue import FairQueue, Quota
from npu_daemon.broker.jobs import JobBook
from npu_daemon.broker.state import CLIENT_GRACE_S, MAX_ATTEMPTS, BrokerState
from npu_daemon.broker.workforce import LEASE_S, Devices, WorkerPhase, Workforce
from npu_daemon.pipeline import infra_error

DEVICE = DeviceInfo(backend="fake", chip="910B2", toolchain_digest="0", sandbox="none", host="here")
INFO = DaemonInfo(device=DEVICE, chips=("910B2",))
DEVICE_SECONDS = 2.0
QUOTAS = {"bob": Quota(max_running=1, max_queued=2, max_device_seconds=5 * DEVICE_SECONDS)}
TENANTS = {b"alice": "alice", b"anna": "alice", b"bob": "bob"}


def request_of(kernel: str = "// kernel", *, use_cache: bool = True, priority: int = 0) -> EvalRequest:
    return EvalRequest(
        op_id="core/toy",
        folder_digest="0",
        candidate=make_candidate(kernel=kernel),
        use_cache=use_cache,
        priority=priority,
    )


def result_of(request: EvalRequest) -> EvalResult:
    charge = Charge(evaluations=1, device_seconds=DEVICE_SECONDS)
    return ok_result(request, 10.0).model_copy(update={"charge": charge})


def new_state(workers: int = 2, devices: int = 1, **fields: object) -> BrokerState:
    book = JobBook(FairQueue(QUOTAS), fields.pop("max_device_seconds", None))  # type: ignore[arg-type]
    return BrokerState(Workforce(workers, Devices(devices)), book, **fields)  # type: ignore[arg-type]


REQUESTS = [request_of(f"// {number}", use_cache=number != 0, priority=number % 2) for number in range(4)]
clients = st.sampled_from(sorted(TENANTS))
request_ids = st.sampled_from([f"r{number}" for number in range(6)])


class BrokerMachine(RuleBasedStateMachine):
    """Checks after each step that nothing is lost, doubled, or charged twice."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.unanswered: dict[Name, EvalRequest] = {}
        self.asked: dict[Name, EvalRequest] = {}
        self.record_jobs: dict[Name, SavedJob] = {}
        self.record_answers: dict[Name, EvalResult] = {}
        self.record_charges: dict[Name, SavedCharge] = {}
        self.past_jobs: list[SendJob] = []
        self.restarts = 0

    @initialize(keeps_jobs=st.booleans(), workers=st.integers(1, 3), devices=st.integers(1, 2))
    def begin(self, keeps_jobs: bool, workers: int, devices: int) -> None:
        self.keeps_jobs, self.workers_wanted, self.devices = keeps_jobs, workers, devices
        self.start()

    def start(self) -> None:
        self.state = new_state(self.workers_wanted, self.devices, keeps_jobs=self.keeps_jobs)
        self.alive: dict[str, SendJob | None] = {}
        self.holding: dict[str, int] = {}
        self.sent: Counter[str] = Counter()
        self.stopped = False
        self.send(
            Restore(
                tuple(self.record_jobs.values()),
                tuple(self.record_answers.items()),
                tuple(self.record_charges.values()),
            )
        )
        self.send(Start())

    def send(self, event: Event) -> list[Action]:
        actions = self.state.handle(event, self.now_s)
        for action in actions:
            self.obey(action)
        return actions

    def obey(self, action: Action) -> None:
        if isinstance(action, Reply):
            name = Name(action.client, action.request_id)
            assert action.result.request_digest == self.asked[name].digest
            self.unanswered.pop(name, None)
        elif isinstance(action, SaveJob):
            assert action.job.name not in self.record_jobs
            self.record_jobs[action.job.name] = action.job
        elif isinstance(action, SaveAnswer):
            self.save_answer(action)
        elif isinstance(action, DropJob):
            del self.record_jobs[action.name]
        elif isinstance(action, SendJob):
            assert self.alive[action.worker_id] is None, "a worker was given two jobs"
            self.alive[action.worker_id] = action
            self.past_jobs.append(action)
            self.sent[action.job_id] += 1
            assert action.attempt == self.sent[action.job_id] <= MAX_ATTEMPTS
        elif isinstance(action, GrantDevice):
            assert action.device not in self.holding.values(), "a device was given to two workers"
            self.holding[action.worker_id] = action.device
        elif isinstance(action, StartWorker):
            assert action.worker_id not in self.alive, "a worker id was used twice"
            self.alive[action.worker_id] = None
        elif isinstance(action, KillWorker):
            self.holding.pop(action.worker_id, None)
        elif isinstance(action, Stop):
            assert not self.stopped
            self.stopped = True
            self.holding.clear()  # of a broker that gives up; workers end with it

    def save_answer(self, action: SaveAnswer) -> None:
        del self.record_jobs[action.name]
        self.record_answers[action.name] = action.result
        if action.charge is not None:
            assert action.name not in self.record_charges, "charged twice"
            self.record_charges[action.name] = SavedCharge(action.name, action.tenant, action.charge)

    # --- clients ---

    @rule(client=clients, request_id=request_ids, request=st.sampled_from(REQUESTS), stored=st.booleans())
    def submit(self, client: bytes, request_id: str, request: EvalRequest, stored: bool) -> None:
        name = Name(client, request_id)
        known = name in self.state.book.answers
        request = self.asked.setdefault(name, request)  # an id is used for one request only
        if self.stopped:
            return
        self.unanswered[name] = request
        hit = result_of(request).model_copy(update={"cached": True}) if stored else None
        actions = self.send(Submit(client, request_id, request, hit, TENANTS[client]))
        if Busy in map(type, actions):
            assert TENANTS[client] == "bob" or self.state.no_room
            del self.unanswered[name]
        assert not known or name not in self.unanswered, "the same id was not answered equally"

    @rule(client=clients, request_id=request_ids)
    def cancel(self, client: bytes, request_id: str) -> None:
        waiting = Name(client, request_id) in self.unanswered and not self.stopped
        replies = [action for action in self.send(Cancel(client, request_id)) if isinstance(action, Reply)]
        assert [reply.result.status for reply in replies] == ([Status.CANCELLED] if waiting else [])

    @rule(client=clients)
    def tenant_expelled(self, client: bytes) -> None:
        self.send(Expel(client))
        if not self.stopped:
            self.unanswered = {
                name: asked for name, asked in self.unanswered.items() if not name.client.startswith(client)
            }

    @rule(problem=st.sampled_from(["", "full"]))
    def disk_fills_or_is_freed(self, problem: str) -> None:
        self.send(Room(problem))
        if problem and not self.stopped:
            assert not any(isinstance(action, SendJob) for action in self.send(Tick()))

    @rule(client=clients)
    def client_gone_for_good(self, client: bytes) -> None:
        self.send(ClientGone(client))
        self.now_s += CLIENT_GRACE_S + 1
        self.tick()
        assert self.stopped or not any(name.client == client for name in self.state.book.job_ids)

    def tick(self) -> None:
        """Clients that were away for too long are not owed anything any more."""
        away = {client for client, s in self.state.absent.items() if self.now_s - s > CLIENT_GRACE_S}
        self.send(Tick())
        if not self.stopped:
            self.unanswered = {
                name: asked for name, asked in self.unanswered.items() if name.client not in away
            }

    # --- workers ---

    def pick(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.state.workforce.workers)))

    def working(self, data: st.DataObject) -> SendJob | None:
        worker_id = self.pick(data)
        job = self.alive[worker_id]
        return job if self.state.workforce.workers[worker_id].lease is not None else None

    @precondition(lambda self: self.state.workforce.workers and not self.stopped)
    @rule(data=st.data())
    def worker_ready(self, data: st.DataObject) -> None:
        first = self.state.info is None
        actions = self.send(WorkerReady(self.pick(data), INFO))
        assert (Ready() in actions) == (first and self.state.info is not None)

    @precondition(lambda self: self.state.workforce.workers and not self.stopped)
    @rule(data=st.data(), retried=st.booleans())
    def worker_answers_its_job(self, data: st.DataObject, retried: bool) -> None:
        job = self.working(data)
        if job is None:
            return
        result = infra_error(job.request, "broken") if retried else result_of(job.request)
        self.alive[job.worker_id] = None
        self.holding.pop(job.worker_id, None)
        self.send(WorkerResult(job.worker_id, job.job_id, job.attempt, result))

    @precondition(lambda self: self.state.workforce.workers and not self.stopped)
    @rule(data=st.data())
    def worker_wants_a_device_or_gives_it_back(self, data: st.DataObject) -> None:
        job = self.working(data)
        if job is None:
            return
        if self.holding.pop(job.worker_id, None) is None:
            self.send(DeviceWanted(job.worker_id, job.job_id, job.attempt))
        else:
            self.send(DeviceFreed(job.worker_id, job.job_id, job.attempt))

    @precondition(lambda self: self.past_jobs)
    @rule(data=st.data(), kind=st.sampled_from([WorkerResult, WorkerBeat, DeviceWanted, DeviceFreed]))
    def late_or_forged_messages_change_nothing(self, data: st.DataObject, kind: type) -> None:
        job = data.draw(st.sampled_from(self.past_jobs))
        if self.state.workforce.holder(job.worker_id, job.job_id, job.attempt) is not None:
            return
        refused = self.state.counts["refused"]
        lease = (job.worker_id, job.job_id, job.attempt)
        assert self.send(kind(*lease, result_of(job.request)) if kind is WorkerResult else kind(*lease)) == []
        assert self.state.counts["refused"] == refused + (0 if self.stopped else 1)

    @precondition(lambda self: self.state.workforce.workers and not self.stopped)
    @rule(data=st.data())
    def worker_beats(self, data: st.DataObject) -> None:
        job = self.working(data)
        if job is not None:
            assert self.send(WorkerBeat(job.worker_id, job.job_id, job.attempt)) == []

    @precondition(lambda self: self.state.workforce.workers and not self.stopped)
    @rule(data=st.data(), killed=st.booleans())
    def worker_dies(self, data: st.DataObject, killed: bool) -> None:
        worker_id = self.pick(data)
        self.alive.pop(worker_id)
        self.holding.pop(worker_id, None)
        self.send(WorkerGone(worker_id, "ended", killed))

    # --- time, size and the end ---

    @rule(seconds=st.sampled_from([1.0, LEASE_S / 2, LEASE_S, 86_400.0]))  # the clock of a host jumps, too
    def time_passes(self, seconds: float) -> None:
        self.now_s += seconds
        self.tick()

    @precondition(lambda self: not self.stopped)
    @rule(workers=st.integers(1, 4))
    def resize(self, workers: int) -> None:
        self.workers_wanted = workers
        self.send(Resize(workers))

    @precondition(lambda self: len(self.asked) > 8)
    @rule()
    def drain(self) -> None:
        self.send(Drain())

    @precondition(lambda self: self.keeps_jobs and self.restarts < 3 and len(self.asked) > 2)
    @rule()
    def broker_is_killed_and_started_again(self) -> None:
        """What is on record is all that the next broker knows."""
        self.restarts += 1
        self.start()
        for name in list(self.unanswered):
            if name not in self.record_jobs:
                del self.unanswered[name]  # its client submits it again, as another step
        self.unanswered |= {name: job.request for name, job in self.record_jobs.items()}

    # --- what always holds ---

    @invariant()
    def each_accepted_request_belongs_to_one_job_in_one_place(self) -> None:
        book = self.state.book
        asked = {name: job_id for job_id, job in book.jobs.items() for name in job.requesters}
        assert asked == book.job_ids
        assert set(asked) == set(self.record_jobs)
        if not self.stopped:
            assert set(asked) == set(self.unanswered)
        leased = [worker.lease.job_id for worker in self.state.workforce.leased() if worker.lease]
        assert sorted([*book.queue, *leased]) == sorted(book.jobs)

    @invariant()
    def equal_questions_share_one_job(self) -> None:
        book = self.state.book
        shareable = [job for job in book.jobs.values() if job.request.use_cache]
        assert {job.request.digest: job.job_id for job in shareable} == book.flights
        assert len(book.flights) == len(shareable)

    @invariant()
    def leases_agree_with_jobs_and_phases(self) -> None:
        for worker in self.state.workforce.workers.values():
            assert (worker.phase is WorkerPhase.BUSY) == (worker.lease is not None)
            if worker.lease is not None:
                job = self.state.book.jobs[worker.lease.job_id]
                assert (job.worker_id, job.attempt) == (worker.worker_id, worker.lease.attempt)
                assert worker.lease.deadline_s >= self.now_s
        running = Counter(job.served_tenant for job in self.state.book.jobs.values() if job.worker_id)
        assert all(self.state.book.queue.running(tenant) == running[tenant] for tenant in TENANTS.values())
        assert running["bob"] <= 1

    @invariant()
    def indexes_of_workers_agree_with_their_phases(self) -> None:
        workforce = self.state.workforce
        idle = {name for name, worker in workforce.workers.items() if worker.phase is WorkerPhase.IDLE}
        next_idle = workforce.next_idle()
        assert (next_idle is None and not idle) or (next_idle is not None and next_idle.worker_id in idle)
        leased = {name for name, worker in workforce.workers.items() if worker.lease is not None}
        assert {worker.worker_id for worker in workforce.leased()} == leased

    @invariant()
    def devices_are_held_by_leased_workers_one_each(self) -> None:
        devices = self.state.workforce.devices
        assert devices.holders == self.holding
        assert sorted([*self.holding.values(), *devices.free]) == list(range(devices.count))
        leased = {worker.worker_id for worker in self.state.workforce.leased()}
        assert {*devices.holders, *devices.waiting} <= leased
        assert not devices.waiting or len(devices.holders) == devices.count

    @invariant()
    def no_worker_is_idle_while_a_job_may_run(self) -> None:
        queue = self.state.book.queue
        held_up = self.state.draining or self.state.no_room or self.stopped
        if self.state.workforce.next_idle() and not held_up:
            assert queue.queued("alice") == 0
            assert queue.queued("bob") == 0 or queue.running("bob") == 1

    @invariant()
    def there_are_as_many_workers_as_wanted(self) -> None:
        workers = self.state.workforce.workers.values()
        if not self.stopped and not self.state.draining:
            assert len(workers) >= self.workers_wanted
            spare = [worker for worker in workers if worker.phase in (WorkerPhase.IDLE, WorkerPhase.STARTING)]
            living = [worker for worker in workers if worker.phase is not WorkerPhase.DYING]
            assert len(living) <= self.workers_wanted or not spare
        assert self.stopped or set(self.state.workforce.workers) <= set(self.alive)

    @invariant()
    def accounts_agree_with_the_record(self) -> None:
        charged = sum(saved.charge.device_seconds for saved in self.record_charges.values())
        assert self.state.book.accounts.device_seconds == charged

    @invariant()
    def a_stopped_broker_owes_nothing_that_is_not_on_record(self) -> None:
        if self.stopped:
            assert set(self.unanswered) <= set(self.record_jobs)
            assert self.keeps_jobs or not self.record_jobs
