"""Workers and devices as the broker sees them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from ascend_gym.core.records import Lease
from npu_daemon.broker.events import Action, GrantDevice, KillWorker, StartWorker

LEASE_S = 15.0


class WorkerPhase(Enum):
    """Where a worker is in its life."""

    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    DYING = "dying"


@dataclass
class Worker:
    """A worker process."""

    worker_id: str
    phase: WorkerPhase = WorkerPhase.STARTING
    lease: Lease | None = None
    leased_s: float = 0.0


@dataclass
class Devices:
    """Devices, each held by one worker at a time for as long as it runs something, first come, first served.

    Attributes:
        count: how many there are.
        holders: device numbers by worker id.
        waiting: ids of workers that want one.
        held_seconds: device time that workers have held devices for, as the broker saw it.
    """

    count: int
    holders: dict[str, int] = field(default_factory=dict)
    waiting: deque[str] = field(default_factory=deque)
    held_seconds: float = 0.0
    _since_s: dict[str, float] = field(default_factory=dict)

    def want(self, worker_id: str) -> None:
        """Queue a worker, unless it has a device or waits already."""
        if worker_id not in self.holders and worker_id not in self.waiting:
            self.waiting.append(worker_id)

    def release(self, worker_id: str, now_s: float) -> None:
        """Take back the device of a worker, or its place in the queue."""
        if self.holders.pop(worker_id, None) is not None:
            self.held_seconds += now_s - self._since_s.pop(worker_id)
        elif worker_id in self.waiting:
            self.waiting.remove(worker_id)

    def grant(self, now_s: float) -> list[tuple[str, int]]:
        """Give free devices to those that wait; return worker ids and device numbers."""
        granted = []
        free = sorted(set(range(self.count)) - set(self.holders.values())) if self.waiting else []
        for device in free[: len(self.waiting)]:
            worker_id = self.waiting.popleft()
            self.holders[worker_id] = device
            self._since_s[worker_id] = now_s
            granted.append((worker_id, device))
        return granted


@dataclass
class Workforce:
    """The worker processes, their leases and their devices.

    Attributes:
        wanted: how many worker processes to keep alive.
        devices: what they run candidates on.
    """

    wanted: int
    devices: Devices
    workers: dict[str, Worker] = field(default_factory=dict)
    _last_number: int = 0

    def start_missing(self) -> list[Action]:
        """Start workers until there are as many as wanted."""
        actions: list[Action] = []
        while len(self.workers) < self.wanted:
            self._last_number += 1
            worker = Worker(f"worker-{self._last_number}")
            self.workers[worker.worker_id] = worker
            actions.append(StartWorker(worker.worker_id))
        return actions

    def retire_surplus(self) -> list[Action]:
        """Kill workers that are too many and have no job."""
        if len(self.workers) <= self.wanted:
            return []
        living = [worker for worker in self.workers.values() if worker.phase is not WorkerPhase.DYING]
        spare = [worker for worker in living if worker.lease is None]
        return [self.kill(worker) for worker in spare[: max(0, len(living) - self.wanted)]]

    def idle(self) -> list[Worker]:
        """Return the workers that can take a job."""
        return [worker for worker in self.workers.values() if worker.phase is WorkerPhase.IDLE]

    def leased(self) -> list[Worker]:
        """Return the workers that have a job."""
        return [worker for worker in self.workers.values() if worker.lease is not None]

    def lease(self, worker: Worker, job_id: str, attempt: int, now_s: float) -> None:
        """Give a job to an idle worker."""
        worker.phase = WorkerPhase.BUSY
        worker.leased_s = now_s
        worker.lease = Lease(
            request_id=job_id, attempt=attempt, worker_id=worker.worker_id, deadline_s=now_s + LEASE_S
        )

    def holder(self, worker_id: str, job_id: str, attempt: int) -> Worker | None:
        """Return the worker if it holds exactly this lease."""
        worker = self.workers.get(worker_id)
        lease = worker.lease if worker else None
        if lease is None or (lease.request_id, lease.attempt) != (job_id, attempt):
            return None
        return worker

    def end_lease(self, worker: Worker, now_s: float) -> float:
        """Take its job and device from a worker; return for how many seconds it had the job."""
        worker.lease = None
        if worker.phase is WorkerPhase.BUSY:
            worker.phase = WorkerPhase.IDLE
        self.devices.release(worker.worker_id, now_s)
        return now_s - worker.leased_s

    def kill(self, worker: Worker) -> Action:
        """Kill a worker, which must have no lease."""
        worker.phase = WorkerPhase.DYING
        return KillWorker(worker.worker_id)

    def grant_devices(self, now_s: float) -> list[Action]:
        """Give free devices to the workers that want one."""
        actions: list[Action] = []
        for worker_id, device in self.devices.grant(now_s):
            lease = self.workers[worker_id].lease
            if lease is not None:
                actions.append(GrantDevice(worker_id, lease.request_id, lease.attempt, device))
        return actions
