"""The broker's decisions: a pure state machine from (event, now) to actions.

It has no sockets, clocks, files or processes. Each accepted request becomes a job, and equal requests share
one. A job is queued or leased to one worker. A lease without heartbeats expires, and later messages of
its worker are refused by comparing job id and attempt. A job that lost its worker is
retried a limited number of times. Workers build without a device and request one for each run. Actions that
persist state precede the replies that depend on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ascend_gym.core.records import DaemonInfo
from ascend_gym.core.status import rule_of
from npu_daemon.broker.events import (
    Action,
    Busy,
    Cancel,
    ClientGone,
    ClientId,
    DeviceFreed,
    DeviceWanted,
    Drain,
    DropJob,
    Event,
    Expel,
    Name,
    OfLease,
    Ping,
    Ready,
    Resize,
    Restore,
    Room,
    SavedJob,
    SaveJob,
    SendJob,
    Start,
    Stop,
    Submit,
    Tick,
    WorkerBeat,
    WorkerGone,
    WorkerReady,
    WorkerResult,
)
from npu_daemon.broker.jobs import JobBook
from npu_daemon.broker.workforce import LEASE_S, WorkerPhase, WorkerRecord, Workforce
from npu_daemon.pipeline import cancelled, infra_error

MAX_ATTEMPTS = 3
PING_S = 5.0
CLIENT_GRACE_S = 60.0
MAX_FAILED_STARTS = 3
_SHUTTING_DOWN = "the daemon is shutting down"


@dataclass
class BrokerState:
    """The complete state of a broker; ``handle`` is its only entry point.

    Attributes:
        workforce: workers, leases and devices.
        book: jobs, answers and accounts.
        keeps_jobs: whether jobs that wait when the broker stops are persisted for the next one.
        info: capabilities of the workers, once one has reported them.
        absent: unreachable clients, with the time since when.
        no_room: why no evaluation begins, if the disk is nearly full.
        counts: refused messages, lost leases and the like since the start, for monitoring.
    """

    workforce: Workforce
    book: JobBook = field(default_factory=JobBook)
    keeps_jobs: bool = False
    info: DaemonInfo | None = None
    absent: dict[ClientId, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    draining: bool = False
    stopped: bool = False
    no_room: str = ""
    _failed_starts: int = 0
    _pinged_s: float = 0.0

    def handle(self, event: Event, now_s: float) -> list[Action]:
        """Process an event at ``now_s`` (monotonic seconds) and return the actions, in order."""
        if self.stopped:
            return []
        actions = _HANDLERS[type(event)](self, event, now_s)
        if self.stopped:
            return actions
        actions += self.workforce.retire_surplus()
        if not self.draining and not self.no_room:
            actions += self._assign_jobs(now_s)
        actions += self.workforce.grant_devices(now_s)
        if self.draining and not self.workforce.leased():
            actions.append(self._stop(None))
        return actions

    def offer(self) -> DaemonInfo | None:
        """Return the capabilities of the daemon with all its workers; ``None`` before one is ready."""
        return self.info and self.info.model_copy(update={"slots": self.workforce.wanted})

    def _start(self, event: Start, now_s: float) -> list[Action]:
        return self.workforce.start_missing()

    def _restore(self, event: Restore, now_s: float) -> list[Action]:
        for saved in event.charges:
            self.book.accounts.charge(saved.name, saved.tenant, saved.charge)
        for name, result in event.answers:
            self.book.answers.keep(name, result)
        for job in event.jobs:
            self.book.accept(job.name, job.tenant, job.request, now_s)
            self.absent[job.name.client] = now_s  # until it is heard of
        return []

    # --- clients ---

    def _submit(self, event: Submit, now_s: float) -> list[Action]:
        name = Name(event.client, event.request_id)
        self.absent.pop(event.client, None)
        if name in self.book.job_ids:
            return []
        earlier = self.book.answers.get(name) or event.stored
        if earlier is not None:
            self.counts["answered_from_store"] += 1
            return [self.book.reply(name, earlier)]
        refusal = _SHUTTING_DOWN if self.draining else self.book.refusal(event.tenant)
        if refusal is not None:
            return [self.book.reply(name, infra_error(event.request, refusal))]
        full = not self.book.has_room(event.tenant, event.request)
        if full or self.no_room:
            self.counts["busy"] += 1
            reason = self.no_room or f"too many jobs of {event.tenant} wait"
            return [Busy(*name, f"{reason}; submit again later")]
        self.book.accept(name, event.tenant, event.request, now_s)
        return [SaveJob(SavedJob(name, event.tenant, event.request))]

    def _cancel(self, event: Cancel, now_s: float) -> list[Action]:
        name = Name(event.client, event.request_id)
        self.absent.pop(event.client, None)
        if name not in self.book.job_ids:
            return []
        request = self.book.jobs[self.book.job_ids[name]].request
        answer = self.book.reply(name, cancelled(request, "cancelled by the client"))
        return [*self._withdraw(name, now_s), answer]

    def _client_gone(self, event: ClientGone, now_s: float) -> list[Action]:
        self.absent.setdefault(event.client, now_s)
        return []

    # --- workers ---

    def _worker_ready(self, event: WorkerReady, now_s: float) -> list[Action]:
        worker = self.workforce.workers.get(event.worker_id)
        if worker is None or worker.phase is not WorkerPhase.STARTING:
            self.counts["refused"] += 1
            return []
        first = self.info is None
        self.info = event.info
        self._failed_starts = 0
        self.workforce.ready(worker)
        return [Ready()] if first else []

    def _worker_beat(self, event: WorkerBeat, now_s: float) -> list[Action]:
        worker = self._holder(event)
        if worker is not None and worker.lease is not None:
            worker.lease.deadline_s = now_s + LEASE_S
        return []

    def _device_wanted(self, event: DeviceWanted, now_s: float) -> list[Action]:
        if self._holder(event) is not None:
            self.workforce.devices.want(event.worker_id)
        return []

    def _device_freed(self, event: DeviceFreed, now_s: float) -> list[Action]:
        if self._holder(event) is not None:
            self.workforce.devices.release(event.worker_id, now_s)
        return []

    def _worker_result(self, event: WorkerResult, now_s: float) -> list[Action]:
        worker = self._holder(event)
        if worker is None:
            return []
        job = self.book.jobs[event.job_id]
        self.book.returned(job, self.workforce.end_lease(worker, now_s))
        if rule_of(event.result.status).retried and self._may_retry(job.attempt):
            self.workforce.ready(worker)  # another one may be better off
            self.book.requeue(job, now_s)
            return []
        actions = self.book.finish(job, event.result, now_s)
        return actions + self.book.end_unaffordable(now_s)

    def _worker_gone(self, event: WorkerGone, now_s: float) -> list[Action]:
        worker = self.workforce.workers.get(event.worker_id)
        if worker is None:
            return []
        starting = worker.phase is WorkerPhase.STARTING
        actions = self._lose_lease(worker, event.reason, now_s)
        self.workforce.remove(worker)
        if starting and not event.killed:  # a host that is short of memory, say, may be better off later
            self._failed_starts += 1
            if self._failed_starts >= MAX_FAILED_STARTS:
                return [*actions, *self._give_up(f"no worker could be started: {event.reason}", now_s)]
        return actions + ([] if self.draining else self.workforce.start_missing())

    def _resize(self, event: Resize, now_s: float) -> list[Action]:
        self.workforce.wanted = event.workers
        return [] if self.draining else self.workforce.start_missing()

    def _room(self, event: Room, now_s: float) -> list[Action]:
        self.counts["disk_full"] += bool(event.problem) and not self.no_room
        self.no_room = event.problem
        return []

    def _expel(self, event: Expel, now_s: float) -> list[Action]:
        names = [name for name in self.book.job_ids if name.client.startswith(event.prefix)]
        for client in [client for client in self.absent if client.startswith(event.prefix)]:
            del self.absent[client]
        return [action for name in names for action in self._withdraw(name, now_s)]

    # --- time and the end ---

    def _tick(self, event: Tick, now_s: float) -> list[Action]:
        actions: list[Action] = []
        for worker in self.workforce.leased():
            if worker.lease is not None and worker.lease.deadline_s <= now_s:
                actions += self._lose_lease(worker, f"no heartbeat for {LEASE_S:g} s", now_s)
                actions.append(self.workforce.kill(worker))
        for client in [client for client, since_s in self.absent.items() if now_s - since_s > CLIENT_GRACE_S]:
            del self.absent[client]
            for name in [name for name in self.book.job_ids if name.client == client]:
                actions += self._withdraw(name, now_s)
        if now_s - self._pinged_s >= PING_S:
            self._pinged_s = now_s
            actions += [Ping(client) for client in dict.fromkeys(name.client for name in self.book.job_ids)]
        return actions

    def _drain(self, event: Drain, now_s: float) -> list[Action]:
        self.draining = True
        return [] if self.keeps_jobs else self.book.end_queued(_SHUTTING_DOWN, now_s)

    # --- steps shared by events ---

    def _assign_jobs(self, now_s: float) -> list[Action]:
        actions: list[Action] = []
        while self.book.queue and (worker := self.workforce.next_idle()) is not None:
            job = self.book.take_next(worker.worker_id, now_s)
            if job is None:
                break
            self.workforce.lease(worker, job.job_id, job.attempt, now_s)
            actions.append(SendJob(worker.worker_id, job.job_id, job.attempt, job.request))
        return actions

    def _holder(self, event: OfLease) -> WorkerRecord | None:
        """Return the worker if it holds the lease of the event; events of other leases are refused."""
        worker = self.workforce.holder(event.worker_id, event.job_id, event.attempt)
        if worker is None:
            self.counts["refused"] += 1
        return worker

    def _may_retry(self, attempt: int) -> bool:
        return attempt < MAX_ATTEMPTS and (self.keeps_jobs or not self.draining)

    def _lose_lease(self, worker: WorkerRecord, reason: str, now_s: float) -> list[Action]:
        lease = worker.lease
        if lease is None:
            return []
        self.counts["leases_lost"] += 1
        job = self.book.jobs[lease.job_id]
        self.book.returned(job, self.workforce.end_lease(worker, now_s))
        if self._may_retry(job.attempt):
            self.book.requeue(job, now_s)
            return []
        complaint = f"the evaluation lost its worker {job.attempt} times, the last time because of: {reason}"
        return self.book.finish(job, infra_error(job.request, complaint), now_s)

    def _withdraw(self, name: Name, now_s: float) -> list[Action]:
        """Remove a requester; a worker whose job has no requesters left is killed."""
        job = self.book.leave(name)
        if job is None or job.worker_id is None:
            return [DropJob(name)]
        worker = self.workforce.workers[job.worker_id]
        self.book.returned(job, self.workforce.end_lease(worker, now_s))
        return [DropJob(name), self.workforce.kill(worker)]

    def _give_up(self, reason: str, now_s: float) -> list[Action]:
        actions: list[Action] = []
        for worker in self.workforce.leased():
            if worker.lease is not None:
                job = self.book.jobs[worker.lease.job_id]
                self.book.returned(job, self.workforce.end_lease(worker, now_s))
                self.book.requeue(job, now_s)
        if not self.keeps_jobs:
            actions += self.book.end_queued(reason, now_s)
        return [*actions, self._stop(reason)]

    def _stop(self, failure: str | None) -> Action:
        self.stopped = True
        return Stop(failure)


_HANDLERS: dict[type[Event], Callable[[BrokerState, Any, float], list[Action]]] = {
    Start: BrokerState._start,
    Restore: BrokerState._restore,
    Submit: BrokerState._submit,
    Cancel: BrokerState._cancel,
    ClientGone: BrokerState._client_gone,
    WorkerReady: BrokerState._worker_ready,
    WorkerBeat: BrokerState._worker_beat,
    DeviceWanted: BrokerState._device_wanted,
    DeviceFreed: BrokerState._device_freed,
    WorkerResult: BrokerState._worker_result,
    WorkerGone: BrokerState._worker_gone,
    Resize: BrokerState._resize,
    Room: BrokerState._room,
    Expel: BrokerState._expel,
    Tick: BrokerState._tick,
    Drain: BrokerState._drain,
}
