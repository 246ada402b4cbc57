"""Job queue: fair between tenants, by priority within a tenant."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

_MIB = 2**20


@dataclass(frozen=True)
class Quota:
    """Limits of one tenant.

    Attributes:
        max_running: jobs on workers at a time; ``None`` for the number of workers.
        max_queued: waiting jobs; beyond that the daemon reports that it is busy.
        max_queued_mib: total size of the requests of waiting jobs; likewise.
        max_device_seconds: total device time that may be charged; ``None`` for no limit. Jobs that run when
            it is reached are finished and charged.
    """

    max_running: int | None = None
    max_queued: int = 10_000
    max_queued_mib: float = 1024.0
    max_device_seconds: float | None = None


class Queued(Protocol):
    """Interface of queued items; tenant, rank and size must not change while they are queued."""

    @property
    def job_id(self) -> str:
        """Identity."""

    @property
    def tenant(self) -> str:
        """Tenant whose share of the workers it uses."""

    @property
    def size_bytes(self) -> int:
        """Memory that it takes."""

    def rank(self) -> tuple[int, bool, int]:
        """Sort key within the tenant; the lowest is served first."""


@dataclass
class _Line:
    """Jobs of one tenant.

    Attributes:
        waiting: ranks, job ids and sizes in order of service.
        served_s: worker time so far; raised to that of the others when the tenant returns from idling.
    """

    waiting: list[tuple[tuple[int, bool, int], str, int]] = field(default_factory=list)
    waiting_bytes: int = 0
    running: int = 0
    served_s: float = 0.0

    @property
    def active(self) -> bool:
        return bool(self.waiting or self.running)


class FairQueue:
    """Serves the tenant with the fewest running jobs, then the one with the least worker time so far.

    Args:
        quotas: quotas of tenants by name.
        default: quota of all other tenants.
    """

    def __init__(self, quotas: Mapping[str, Quota] | None = None, default: Quota | None = None) -> None:
        self._quotas = dict(quotas or {})
        self._default = default or Quota()
        self._lines: dict[str, _Line] = {}

    def __len__(self) -> int:
        return sum(len(line.waiting) for line in self._lines.values())

    def __iter__(self) -> Iterator[str]:
        return (job_id for line in self._lines.values() for _, job_id, _ in line.waiting)

    def quota(self, tenant: str) -> Quota:
        """Return the quota of a tenant."""
        return self._quotas.get(tenant, self._default)

    def queued(self, tenant: str) -> int:
        """Return the number of waiting jobs of a tenant."""
        return len(self._line(tenant).waiting)

    def has_room(self, tenant: str, size_bytes: int) -> bool:
        """Whether a further job of a tenant may wait."""
        line, quota = self._line(tenant), self.quota(tenant)
        fits = line.waiting_bytes + size_bytes <= quota.max_queued_mib * _MIB or not line.waiting
        return fits and len(line.waiting) < quota.max_queued

    def running(self, tenant: str) -> int:
        """Return the number of a tenant's jobs on workers."""
        return self._line(tenant).running

    def tenants(self) -> list[str]:
        """Return all tenants that have had a job, sorted by name."""
        return sorted(self._lines)

    def push(self, job: Queued) -> None:
        """Add a job."""
        line = self._line(job.tenant)
        if not line.active:
            others = [other.served_s for other in self._lines.values() if other.active]
            line.served_s = max(line.served_s, min(others, default=0.0))
        insort(line.waiting, (job.rank(), job.job_id, job.size_bytes))
        line.waiting_bytes += job.size_bytes

    def pop(self) -> str | None:
        """Remove and return the id of the job to serve next; it counts as running until ``ended``."""
        ready = [(line.running, line.served_s, name) for name, line in self._lines.items() if self._may(name)]
        if not ready:
            return None
        line = self._lines[min(ready)[2]]
        line.running += 1
        _, job_id, size_bytes = line.waiting.pop(0)
        line.waiting_bytes -= size_bytes
        return job_id

    def remove(self, job: Queued) -> None:
        """Remove a waiting job."""
        line = self._line(job.tenant)
        line.waiting.remove((job.rank(), job.job_id, job.size_bytes))
        line.waiting_bytes -= job.size_bytes

    def ended(self, tenant: str, worker_seconds: float) -> None:
        """Record that a job of a tenant has left its worker after ``worker_seconds``."""
        line = self._line(tenant)
        line.running -= 1
        line.served_s += worker_seconds

    def _may(self, tenant: str) -> bool:
        line, limit = self._lines[tenant], self.quota(tenant).max_running
        return bool(line.waiting) and (limit is None or line.running < limit)

    def _line(self, tenant: str) -> _Line:
        return self._lines.setdefault(tenant, _Line())
