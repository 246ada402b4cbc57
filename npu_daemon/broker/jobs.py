"""Jobs of the broker, with their requesters, answers and charges."""

from __future__ import annotations

import zlib
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from functools import cached_property

from ascend_gym.core.records import Charge, EvalRequest, EvalResult, PhaseSeconds
from npu_daemon.broker.events import Action, Name, Reply, SaveAnswer
from npu_daemon.broker.fair_queue import FairQueue
from npu_daemon.pipeline import infra_error

KEPT_ANSWERS = 2_000
KEPT_CHARGES = 100_000


@dataclass
class Requester:
    """A client that waits for the result of a job, with the time since when."""

    tenant: str
    since_s: float


@dataclass
class Job:
    """An accepted, unanswered request; equal requests share one job.

    Attributes:
        number: order of acceptance.
        requesters: clients that want the answer; the first one's tenant is served and charged.
        priority: the highest of those with which its tenant has asked.
        attempt: number of leases so far.
        queue_seconds: waiting time up to its last lease.
        worker_id: worker that evaluates it.
        served_tenant: tenant whose place in the queue it used when it was leased.
    """

    number: int
    request: EvalRequest
    requesters: dict[Name, Requester]
    queued_s: float
    priority: int = 0
    attempt: int = 0
    queue_seconds: float = 0.0
    worker_id: str | None = None
    served_tenant: str = ""

    @property
    def job_id(self) -> str:
        """Identity in messages to workers."""
        return f"job-{self.number}"

    @cached_property
    def size_bytes(self) -> int:
        """Approximate memory of its request."""
        return _size_bytes(self.request)

    @property
    def payer(self) -> Name:
        """Request that is charged."""
        return next(iter(self.requesters))

    @property
    def tenant(self) -> str:
        """Tenant whose share of the workers it uses."""
        return self.requesters[self.payer].tenant

    def rank(self) -> tuple[int, bool, int]:
        """Sort key within a tenant: by priority, then retries first, then by age."""
        return (-self.priority, self.attempt == 0, self.number)


@dataclass
class Account:
    """Charges of a tenant."""

    evaluations: int = 0
    device_seconds: float = 0.0


class RecentNames:
    """The most recently added names, at most ``kept``.

    It is a set and a queue, because an ordered dictionary with a constant number of entries keeps growing its
    tables for a long time.
    """

    def __init__(self, kept: int) -> None:
        self._names: set[Name] = set()
        self._order: deque[Name] = deque()
        self._kept = kept

    def __contains__(self, name: Name) -> bool:
        return name in self._names

    def add(self, name: Name) -> None:
        """Add a new name; the oldest one is dropped if necessary."""
        if len(self._order) == self._kept:
            self._names.remove(self._order.popleft())
        self._names.add(name)
        self._order.append(name)


class RecentAnswers:
    """The last answers by name, as compressed JSON: as objects each takes some 30 KiB."""

    def __init__(self) -> None:
        self._texts: OrderedDict[Name, bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._texts)

    def __contains__(self, name: Name) -> bool:
        return name in self._texts

    def get(self, name: Name) -> EvalResult | None:
        """Return the answer that was given to a name, if it is remembered."""
        text = self._texts.get(name)
        return None if text is None else EvalResult.model_validate_json(zlib.decompress(text))

    def keep(self, name: Name, result: EvalResult) -> None:
        """Remember an answer; the oldest is dropped if necessary."""
        self._texts[name] = zlib.compress(result.model_dump_json().encode(), level=1)
        self._texts.move_to_end(name)
        while len(self._texts) > KEPT_ANSWERS:
            self._texts.popitem(last=False)


@dataclass
class Accounts:
    """Charges each request at most once, however often it is evaluated or answered.

    Attributes:
        tenants: accounts by tenant.
        device_seconds: total device time of all tenants.
    """

    tenants: dict[str, Account] = field(default_factory=dict)
    device_seconds: float = 0.0
    _charged: RecentNames = field(default_factory=lambda: RecentNames(KEPT_CHARGES))

    def charge(self, name: Name, tenant: str, charge: Charge) -> bool:
        """Charge a request; return ``False`` if the charge is empty or the request was charged before."""
        if name in self._charged or charge == Charge():
            return False
        self._charged.add(name)
        account = self.tenants.setdefault(tenant, Account())
        account.evaluations += charge.evaluations
        account.device_seconds += charge.device_seconds
        self.device_seconds += charge.device_seconds
        return True

    def spent_s(self, tenant: str) -> float:
        """Return the device seconds of a tenant."""
        return self.tenants[tenant].device_seconds if tenant in self.tenants else 0.0


@dataclass
class JobBook:
    """All jobs, and the recent answers.

    Attributes:
        queue: waiting jobs.
        max_device_seconds: limit of the total device time; jobs that run when it is reached are finished.
        jobs: jobs by job id.
        job_ids: job ids by the names of their requesters.
        flights: job ids of requests that may share an answer, by request digest.
        answers: recent answers by name, so that a repeated request gets the same answer.
        counts: numbers of answers by status, for monitoring.
    """

    queue: FairQueue = field(default_factory=FairQueue)
    max_device_seconds: float | None = None
    accounts: Accounts = field(default_factory=Accounts)
    jobs: dict[str, Job] = field(default_factory=dict)
    job_ids: dict[Name, str] = field(default_factory=dict)
    flights: dict[str, str] = field(default_factory=dict)
    answers: RecentAnswers = field(default_factory=RecentAnswers)
    counts: Counter[str] = field(default_factory=Counter)
    _last_number: int = 0

    def has_room(self, tenant: str, request: EvalRequest) -> bool:
        """Whether a further request of a tenant may wait; one that joins another job always may."""
        shared = request.use_cache and request.digest in self.flights
        return shared or self.queue.has_room(tenant, _size_bytes(request))

    def accept(self, name: Name, tenant: str, request: EvalRequest, now_s: float) -> None:
        """Accept a request as a new job, or add it to the job of an equal request.

        Args:
            name: client and request, for the answer.
            tenant: tenant that is charged if the request becomes a new job.
            request: request to evaluate.
            now_s: the broker's monotonic clock.
        """
        requester = Requester(tenant, now_s)
        shared = self.flights.get(request.digest) if request.use_cache else None
        if shared is not None:
            job = self.jobs[shared]
            job.requesters[name] = requester
            self.job_ids[name] = shared
            if tenant == job.tenant and request.priority > job.priority:
                self._raise_priority(job, request.priority)
            return
        self._last_number += 1
        job = Job(self._last_number, request, {name: requester}, now_s, request.priority)
        self.jobs[job.job_id] = job
        self.job_ids[name] = job.job_id
        if request.use_cache:
            self.flights[request.digest] = job.job_id
        self.queue.push(job)

    def _raise_priority(self, job: Job, priority: int) -> None:
        if job.worker_id is None:
            self.queue.remove(job)
        job.priority = priority
        if job.worker_id is None:
            self.queue.push(job)

    def refusal(self, tenant: str) -> str | None:
        """Return why nothing more is evaluated for a tenant; ``None`` if it may continue."""
        limit_s = self.max_device_seconds
        if limit_s is not None and self.accounts.device_seconds >= limit_s:
            return f"the {limit_s:g} device seconds of this daemon are spent (--max-device-seconds)"
        limit_s = self.queue.quota(tenant).max_device_seconds
        if limit_s is not None and self.accounts.spent_s(tenant) >= limit_s:
            return f"the {limit_s:g} device seconds of {tenant} are spent"
        return None

    def take_next(self, worker_id: str, now_s: float) -> Job | None:
        """Return the next job, assigned to ``worker_id``; ``None`` if there is none."""
        job_id = self.queue.pop()
        if job_id is None:
            return None
        job = self.jobs[job_id]
        job.attempt += 1
        job.queue_seconds += now_s - job.queued_s
        job.worker_id, job.served_tenant = worker_id, job.tenant
        return job

    def returned(self, job: Job, worker_seconds: float) -> None:
        """Record that a job is no longer on a worker."""
        job.worker_id = None
        self.queue.ended(job.served_tenant, worker_seconds)

    def requeue(self, job: Job, now_s: float) -> None:
        """Queue a job for another attempt."""
        job.queued_s = now_s
        self.queue.push(job)

    def leave(self, name: Name) -> Job | None:
        """Remove a requester from its job; return the job if it is on a worker and has no requesters left."""
        job = self.jobs[self.job_ids.pop(name)]
        if job.worker_id is None:
            self.queue.remove(job)
        if len(job.requesters) == 1:
            self._forget(job)
            return job if job.worker_id is not None else None
        del job.requesters[name]
        if job.worker_id is None:
            self.queue.push(job)
        return None

    def finish(self, job: Job, result: EvalResult, now_s: float) -> list[Action]:
        """Answer all requesters; the first is charged, the others get the result as cached."""
        self._forget(job)
        self.counts[result.status.value] += 1
        actions: list[Action] = []
        for name, requester in job.requesters.items():
            del self.job_ids[name]
            if name == job.payer:
                answer = _with_queue_time(result, job.queue_seconds)
                charged = not result.cached and self.accounts.charge(name, requester.tenant, result.charge)
            else:
                answer = _shared(result, now_s - requester.since_s)
                charged = False
            actions.append(SaveAnswer(name, answer, requester.tenant, result.charge if charged else None))
            actions.append(self.reply(name, answer))
        return actions

    def end_queued(self, reason: str, now_s: float) -> list[Action]:
        """End all waiting jobs."""
        waiting = [self.jobs[job_id] for job_id in self.queue]
        return [action for job in waiting for action in self._end_queued(job, reason, now_s)]

    def end_unaffordable(self, now_s: float) -> list[Action]:
        """End the waiting jobs of tenants whose limits are reached."""
        refusals = {tenant: self.refusal(tenant) for tenant in self.queue.tenants()}
        refused = {tenant: reason for tenant, reason in refusals.items() if reason is not None}
        if not refused:
            return []
        ended = [job for job in map(self.jobs.__getitem__, self.queue) if job.tenant in refused]
        return [action for job in ended for action in self._end_queued(job, refused[job.tenant], now_s)]

    def reply(self, name: Name, result: EvalResult) -> Action:
        """Answer a request, and remember the answer."""
        self.answers.keep(name, result)
        return Reply(*name, result)

    def _end_queued(self, job: Job, reason: str, now_s: float) -> list[Action]:
        self.queue.remove(job)
        return self.finish(job, infra_error(job.request, reason), now_s)

    def _forget(self, job: Job) -> None:
        del self.jobs[job.job_id]
        if job.request.use_cache:
            del self.flights[job.request.digest]


def _size_bytes(request: EvalRequest) -> int:
    cases = request.given.cases if request.given is not None else ()
    arrays = (array for case in cases for group in (*case.inputs, *case.expected) for array in group)
    return sum(map(len, request.candidate.texts.values())) + sum(len(array.data) for array in arrays)


def _with_queue_time(result: EvalResult, queue_seconds: float) -> EvalResult:
    seconds = result.seconds.model_copy(
        update={"queue": queue_seconds, "total": result.seconds.total + queue_seconds}
    )
    return result.model_copy(update={"seconds": seconds})


def _shared(result: EvalResult, waited_s: float) -> EvalResult:
    """Return a result for a requester whose equal request joined an earlier one."""
    seconds = PhaseSeconds(queue=waited_s, total=waited_s)
    return result.model_copy(update={"cached": True, "seconds": seconds})
