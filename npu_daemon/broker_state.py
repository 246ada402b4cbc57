"""The broker's decisions: a pure state machine from (event, now) to actions.

It knows no sockets, clocks or processes. Each accepted request becomes a job; a job is queued or leased to
one worker; a lease that is not confirmed by heartbeats is lost, and whatever its worker says later is
refused by comparing job id and attempt. A job that lost its worker is tried again, a limited number of times.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import singledispatchmethod

from ascend_gym.core.records import DeviceInfo, EvalRequest, EvalResult, Lease
from ascend_gym.core.status import rule_of
from npu_daemon.broker_events import (
    Action,
    Cancel,
    ClientGone,
    ClientId,
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
from npu_daemon.pipeline import cancelled, infra_error

MAX_ATTEMPTS = 2
LEASE_S = 15.0
MAX_QUEUED_JOBS = 10_000
MAX_FAILED_STARTS = 3
KEPT_ANSWERS = 1_000


@dataclass
class Job:
    """An accepted request that has not been answered."""

    job_id: str
    client: ClientId
    request_id: str
    request: EvalRequest
    queued_s: float
    attempt: int = 0
    queue_seconds: float = 0.0
    worker_id: str | None = None


class WorkerPhase(Enum):
    """Where a worker is in its life."""

    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    DYING = "dying"


@dataclass
class Worker:
    """A worker process as the broker sees it."""

    worker_id: str
    phase: WorkerPhase = WorkerPhase.STARTING
    lease: Lease | None = None


class JobQueue:
    """The order in which jobs are served: first come, first served; a job tried again goes first."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[str]:
        return iter(self._waiting)

    def push(self, job: Job) -> None:
        """Add a job."""
        if job.attempt:
            self._waiting.appendleft(job.job_id)
        else:
            self._waiting.append(job.job_id)

    def pop(self) -> str:
        """Remove and return the id of the job to serve next."""
        return self._waiting.popleft()

    def remove(self, job: Job) -> None:
        """Remove a job that is not to be served any more."""
        self._waiting.remove(job.job_id)


@dataclass
class BrokerState:
    """All that the broker remembers; ``handle`` is the only way in.

    Attributes:
        workers_wanted: how many worker processes to keep alive.
        device: what the workers measure with, once one has said so.
    """

    workers_wanted: int
    device: DeviceInfo | None = None
    jobs: dict[str, Job] = field(default_factory=dict)
    job_ids: dict[tuple[ClientId, str], str] = field(default_factory=dict)
    queue: JobQueue = field(default_factory=JobQueue)
    workers: dict[str, Worker] = field(default_factory=dict)
    answers: OrderedDict[tuple[ClientId, str], EvalResult] = field(default_factory=OrderedDict)
    draining: bool = False
    stopped: bool = False
    failed_starts: int = 0
    refused_messages: int = 0
    _last_id: int = 0

    def handle(self, event: Event, now_s: float) -> list[Action]:
        """Take in what happened at ``now_s`` (monotonic seconds) and return what to do, in order."""
        if self.stopped:
            return []
        actions = self._on(event, now_s)
        if self.stopped:
            return actions
        actions += self._assign_jobs(now_s)
        if self.draining and not any(worker.lease for worker in self.workers.values()):
            actions.append(self._stop(None))
        return actions

    @singledispatchmethod
    def _on(self, event: Event, now_s: float) -> list[Action]:
        raise TypeError(f"unknown event {event!r}")

    @_on.register
    def _start(self, event: Start, now_s: float) -> list[Action]:
        return self._start_missing_workers()

    @_on.register
    def _submit(self, event: Submit, now_s: float) -> list[Action]:
        name = (event.client, event.request_id)
        if name in self.job_ids:
            return []
        earlier = self.answers.get(name) or event.stored
        if earlier is not None:
            return [self._answer(name, earlier)]
        if self.draining:
            return [self._answer(name, infra_error(event.request, "the daemon is shutting down"))]
        if len(self.queue) >= MAX_QUEUED_JOBS:
            complaint = f"the daemon's queue is full ({MAX_QUEUED_JOBS} jobs); submit again later"
            return [self._answer(name, infra_error(event.request, complaint))]
        job = Job(self._new_id("job"), *name, event.request, queued_s=now_s)
        self.jobs[job.job_id] = job
        self.job_ids[name] = job.job_id
        self.queue.push(job)
        return []

    @_on.register
    def _cancel(self, event: Cancel, now_s: float) -> list[Action]:
        job_id = self.job_ids.get((event.client, event.request_id))
        if job_id is None:
            return []
        job = self.jobs[job_id]
        return [*self._withdraw(job), self._finish(job, cancelled(job.request, "cancelled by the client"))]

    @_on.register
    def _client_gone(self, event: ClientGone, now_s: float) -> list[Action]:
        for name in [name for name in self.answers if name[0] == event.client]:
            del self.answers[name]
        actions: list[Action] = []
        for job in [job for job in self.jobs.values() if job.client == event.client]:
            actions += self._withdraw(job)
            self._forget(job)
        return actions

    @_on.register
    def _worker_ready(self, event: WorkerReady, now_s: float) -> list[Action]:
        worker = self.workers.get(event.worker_id)
        if worker is None or worker.phase is not WorkerPhase.STARTING:
            self.refused_messages += 1
            return []
        first = self.device is None
        self.device = event.device
        self.failed_starts = 0
        worker.phase = WorkerPhase.IDLE
        return [Ready()] if first else []

    @_on.register
    def _worker_beat(self, event: WorkerBeat, now_s: float) -> list[Action]:
        worker = self._holder(event.worker_id, event.job_id, event.attempt)
        if worker is not None and worker.lease is not None:
            worker.lease = worker.lease.model_copy(update={"deadline_s": now_s + LEASE_S})
        return []

    @_on.register
    def _worker_result(self, event: WorkerResult, now_s: float) -> list[Action]:
        worker = self._holder(event.worker_id, event.job_id, event.attempt)
        if worker is None:
            return []
        worker.lease = None
        worker.phase = WorkerPhase.IDLE
        job = self.jobs[event.job_id]
        job.worker_id = None
        if rule_of(event.result.status).retried and job.attempt < MAX_ATTEMPTS:
            return self._requeue(job, now_s)
        return [self._finish(job, _with_queue_time(event.result, job.queue_seconds))]

    @_on.register
    def _worker_gone(self, event: WorkerGone, now_s: float) -> list[Action]:
        worker = self.workers.pop(event.worker_id, None)
        if worker is None:
            return []
        actions = self._lose_lease(worker, event.reason, now_s)
        if worker.phase is WorkerPhase.STARTING:
            self.failed_starts += 1
            if self.failed_starts >= MAX_FAILED_STARTS:
                return [*actions, *self._give_up(f"no worker could be started: {event.reason}")]
        return actions + self._start_missing_workers()

    @_on.register
    def _tick(self, event: Tick, now_s: float) -> list[Action]:
        actions: list[Action] = []
        for worker in self.workers.values():
            if worker.lease is not None and worker.lease.deadline_s <= now_s:
                actions += self._lose_lease(worker, f"no heartbeat for {LEASE_S:g} s", now_s)
                actions.append(self._kill(worker))
        return actions

    @_on.register
    def _drain(self, event: Drain, now_s: float) -> list[Action]:
        self.draining = True
        queued = [self.jobs[job_id] for job_id in self.queue]
        actions: list[Action] = []
        for job in queued:
            self.queue.remove(job)
            actions.append(self._finish(job, infra_error(job.request, "the daemon is shutting down")))
        return actions

    # --- steps shared by events ---

    def _new_id(self, prefix: str) -> str:
        self._last_id += 1
        return f"{prefix}-{self._last_id}"

    def _start_missing_workers(self) -> list[Action]:
        if self.draining:
            return []
        actions: list[Action] = []
        while len(self.workers) < self.workers_wanted:
            worker = Worker(self._new_id("worker"))
            self.workers[worker.worker_id] = worker
            actions.append(StartWorker(worker.worker_id))
        return actions

    def _assign_jobs(self, now_s: float) -> list[Action]:
        actions: list[Action] = []
        for worker in self.workers.values():
            if worker.phase is WorkerPhase.IDLE and self.queue:
                actions.append(self._lease(self.jobs[self.queue.pop()], worker, now_s))
        return actions

    def _lease(self, job: Job, worker: Worker, now_s: float) -> Action:
        job.attempt += 1
        job.queue_seconds += now_s - job.queued_s
        job.worker_id = worker.worker_id
        worker.phase = WorkerPhase.BUSY
        worker.lease = Lease(
            request_id=job.job_id,
            attempt=job.attempt,
            worker_id=worker.worker_id,
            deadline_s=now_s + LEASE_S,
        )
        return SendJob(worker.worker_id, job.job_id, job.attempt, job.request)

    def _holder(self, worker_id: str, job_id: str, attempt: int) -> Worker | None:
        """Return the worker if it holds exactly this lease; a message about any other is refused."""
        worker = self.workers.get(worker_id)
        lease = worker.lease if worker else None
        if lease is None or (lease.request_id, lease.attempt) != (job_id, attempt):
            self.refused_messages += 1
            return None
        return worker

    def _lose_lease(self, worker: Worker, reason: str, now_s: float) -> list[Action]:
        lease, worker.lease = worker.lease, None
        if lease is None:
            return []
        job = self.jobs[lease.request_id]
        job.worker_id = None
        if job.attempt < MAX_ATTEMPTS:
            return self._requeue(job, now_s)
        complaint = f"the evaluation lost its worker {job.attempt} times, the last time because of: {reason}"
        return [self._finish(job, infra_error(job.request, complaint))]

    def _requeue(self, job: Job, now_s: float) -> list[Action]:
        if self.draining:
            return [self._finish(job, infra_error(job.request, "the daemon is shutting down"))]
        job.queued_s = now_s
        self.queue.push(job)
        return []

    def _withdraw(self, job: Job) -> list[Action]:
        """Take a job from the queue or from its worker, which has to die for that."""
        if job.worker_id is None:
            self.queue.remove(job)
            return []
        worker = self.workers[job.worker_id]
        worker.lease = None
        return [self._kill(worker)]

    def _kill(self, worker: Worker) -> Action:
        worker.phase = WorkerPhase.DYING
        return KillWorker(worker.worker_id)

    def _finish(self, job: Job, result: EvalResult) -> Action:
        self._forget(job)
        return self._answer((job.client, job.request_id), result)

    def _forget(self, job: Job) -> None:
        del self.jobs[job.job_id]
        del self.job_ids[job.client, job.request_id]

    def _answer(self, name: tuple[ClientId, str], result: EvalResult) -> Action:
        """Reply, and remember the answer so that submitting the same id again is answered equally."""
        self.answers[name] = result
        self.answers.move_to_end(name)
        while len(self.answers) > KEPT_ANSWERS:
            self.answers.popitem(last=False)
        return Reply(*name, result)

    def _give_up(self, reason: str) -> list[Action]:
        actions: list[Action] = []
        for job in list(self.jobs.values()):
            actions += [*self._withdraw(job), self._finish(job, infra_error(job.request, reason))]
        return [*actions, self._stop(reason)]

    def _stop(self, failure: str | None) -> Action:
        self.stopped = True
        return Stop(failure)


def _with_queue_time(result: EvalResult, queue_seconds: float) -> EvalResult:
    seconds = result.seconds.model_copy(
        update={"queue": queue_seconds, "total": result.seconds.total + queue_seconds}
    )
    return result.model_copy(update={"seconds": seconds})
