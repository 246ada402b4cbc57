"""What a daemon says of itself, and messages between its processes."""

from __future__ import annotations

from pydantic import Field

from ascend_gym.core.request_records import Record
from ascend_gym.core.result_records import DeviceInfo


class DaemonInfo(Record):
    """Capabilities of a daemon or of one worker.

    Attributes:
        device: device that measures.
        chips: supported chips.
        slots: number of evaluations at a time.
    """

    device: DeviceInfo
    chips: tuple[str, ...]
    slots: int = Field(default=1, ge=1)


class DeviceGrant(Record):
    """A device that a worker may use until it reports that it is free."""

    device: int = Field(ge=0)


class WorkerCount(Record):
    """Desired number of workers of a daemon."""

    workers: int = Field(ge=1, le=4096)


class TenantName(Record):
    """A tenant of a daemon with keys."""

    tenant: str = Field(min_length=1, max_length=64)


class TenantStatus(Record):
    """Jobs and charges of one tenant of a daemon; ``connections`` are those that have sent anything."""

    tenant: str
    queued: int
    running: int
    evaluations: int
    device_seconds: float
    connections: int = 0


class DaemonStatus(Record):
    """State of a daemon at one moment.

    Attributes:
        address: address for clients.
        info: its capabilities; ``None`` before the first worker is ready.
        up_seconds: wall seconds since it started.
        draining: whether it stops once the running jobs have finished.
        workers: numbers of workers by phase.
        devices: number of devices, of which ``devices_held`` are in use.
        device_held_seconds: total time that workers have held devices, used or not.
        charged_device_seconds: charged device time, including that of earlier daemons with its journal.
        queued: number of waiting jobs.
        running: number of jobs on workers.
        tenants: tenants by name.
        counts: numbers of events since it started, by name.
    """

    address: str
    info: DaemonInfo | None
    up_seconds: float
    draining: bool
    workers: dict[str, int]
    devices: int
    devices_held: int
    device_held_seconds: float
    charged_device_seconds: float
    queued: int
    running: int
    tenants: tuple[TenantStatus, ...]
    counts: dict[str, int]
