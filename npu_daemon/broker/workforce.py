"""Workers and devices in the broker's state."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from heapq import heappop, heappush

from npu_daemon.broker.events import Action, GrantDevice, KillWorker, StartWorker

LEASE_S = 15.0


class WorkerPhase(Enum):
    """Phase in the life of a worker."""

    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    DYING = "dying"


@dataclass
class Lease:
    """A job's lease from ``since_s`` until ``deadline_s``; both on the broker's monotonic clock."""

    job_id: str
    attempt: int
    since_s: float
    deadline_s: float


@dataclass
class WorkerRecord:
    """A worker process; ``Workforce`` moves it from phase to phase."""

    worker_id: str
    phase: WorkerPhase = WorkerPhase.STARTING
    lease: Lease | None = None


@dataclass
class Devices:
    """Devices, each held by one worker at a time for the duration of a run, first come, first served.

    Attributes:
        count: number of devices.
        free: numbers of free devices, as a heap: the lowest is granted first.
        holders: device numbers by worker id.
        waiting: ids of workers that wait for one.
        held_seconds: total time that devices were held, as seen by the broker.
    """

    count: int
    free: list[int] = field(init=False)
    holders: dict[str, int] = field(default_factory=dict)
    waiting: deque[str] = field(default_factory=deque)
    held_seconds: float = 0.0
    _since_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.free = list(range(self.count))

    def want(self, worker_id: str) -> None:
        """Queue a worker, unless it holds a device or waits already."""
        if worker_id not in self.holders and worker_id not in self.waiting:
            self.waiting.append(worker_id)

    def release(self, worker_id: str, now_s: float) -> None:
        """Release the device of a worker, or its place in the queue."""
        device = self.holders.pop(worker_id, None)
        if device is not None:
            heappush(self.free, device)
            self.held_seconds += now_s - self._since_s.pop(worker_id)
        elif worker_id in self.waiting:
            self.waiting.remove(worker_id)

    def grant(self, now_s: float) -> list[tuple[str, int]]:
        """Assign free devices to waiting workers; return worker ids and device numbers."""
        granted = []
        while self.waiting and self.free:
            worker_id = self.waiting.popleft()
            device = self.holders[worker_id] = heappop(self.free)
            self._since_s[worker_id] = now_s
            granted.append((worker_id, device))
        return granted


@dataclass
class Workforce:
    """The worker processes, their leases and their devices.

    Attributes:
        wanted: number of worker processes to keep alive.
        devices: devices on which they run candidates.
    """

    wanted: int
    devices: Devices
    workers: dict[str, WorkerRecord] = field(default_factory=dict)
    _idle: dict[str, WorkerRecord] = field(default_factory=dict)
    _leased: dict[str, WorkerRecord] = field(default_factory=dict)
    _last_number: int = 0

    def start_missing(self) -> list[Action]:
        """Start workers until their number is ``wanted``."""
        actions: list[Action] = []
        while len(self.workers) < self.wanted:
            self._last_number += 1
            worker = WorkerRecord(f"worker-{self._last_number}")
            self.workers[worker.worker_id] = worker
            actions.append(StartWorker(worker.worker_id))
        return actions

    def retire_surplus(self) -> list[Action]:
        """Kill surplus workers without a job."""
        if len(self.workers) <= self.wanted:
            return []
        living = [worker for worker in self.workers.values() if worker.phase is not WorkerPhase.DYING]
        spare = [worker for worker in living if worker.lease is None]
        return [self.kill(worker) for worker in spare[: max(0, len(living) - self.wanted)]]

    def next_idle(self) -> WorkerRecord | None:
        """Return the worker that became idle last: what it has loaded and read may serve the next job."""
        return next(reversed(self._idle.values()), None)

    def leased(self) -> list[WorkerRecord]:
        """Return the workers with a job."""
        return list(self._leased.values())

    def ready(self, worker: WorkerRecord) -> None:
        """Record that a worker has started, or has failed: it gets a job if no other is idle."""
        worker.phase = WorkerPhase.IDLE
        self._idle = {worker.worker_id: worker, **self._idle}

    def lease(self, worker: WorkerRecord, job_id: str, attempt: int, now_s: float) -> None:
        """Lease a job to an idle worker.

        Args:
            worker: idle worker.
            job_id: identity of the job in messages to workers.
            attempt: number of leases of the job, including this one.
            now_s: the broker's monotonic clock, from which the lease runs.
        """
        del self._idle[worker.worker_id]
        self._leased[worker.worker_id] = worker
        worker.phase = WorkerPhase.BUSY
        worker.lease = Lease(job_id, attempt, now_s, now_s + LEASE_S)

    def holder(self, worker_id: str, job_id: str, attempt: int) -> WorkerRecord | None:
        """Return the worker if it holds exactly this lease, else ``None``."""
        worker = self._leased.get(worker_id)
        lease = worker.lease if worker else None
        if lease is None or (lease.job_id, lease.attempt) != (job_id, attempt):
            return None
        return worker

    def end_lease(self, worker: WorkerRecord, now_s: float) -> float:
        """End a worker's lease and release its device; return the duration of the lease in seconds.

        Raises:
            ValueError: the worker has no lease.
        """
        lease = worker.lease
        if lease is None:
            raise ValueError(f"{worker.worker_id} has no lease")
        worker.lease = None
        del self._leased[worker.worker_id]
        worker.phase = WorkerPhase.IDLE
        self._idle[worker.worker_id] = worker
        self.devices.release(worker.worker_id, now_s)
        return now_s - lease.since_s

    def kill(self, worker: WorkerRecord) -> Action:
        """Kill a worker without a lease."""
        worker.phase = WorkerPhase.DYING
        self._idle.pop(worker.worker_id, None)
        return KillWorker(worker.worker_id)

    def remove(self, worker: WorkerRecord) -> None:
        """Remove a worker whose process has ended, and which has no lease."""
        del self.workers[worker.worker_id]
        self._idle.pop(worker.worker_id, None)

    def grant_devices(self, now_s: float) -> list[Action]:
        """Assign free devices to the workers that wait for one."""
        actions: list[Action] = []
        for worker_id, device in self.devices.grant(now_s):
            lease = self.workers[worker_id].lease
            if lease is not None:
                actions.append(GrantDevice(worker_id, lease.job_id, lease.attempt, device))
        return actions
