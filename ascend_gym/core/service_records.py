"""Messages that brokers, workers and operators of a daemon exchange."""

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


class TenantStatus(Record):
    """Jobs and charges of one tenant of a daemon."""

    tenant: str
    queued: int
    running: int
    evaluations: int
    device_seconds: float


class DaemonStatus(Record):
    """A daemon at one moment.

    Attributes:
        address: where clients connect.
        info: what it can do; ``None`` before the first worker is ready.
        up_seconds: wall seconds since it started.
        draining: whether it will stop when what runs is finished.
        workers: workers by phase of life.
        devices: devices, of which ``devices_held`` are in use.
        device_held_seconds: device time that workers have had, used or not.
        charged_device_seconds: device time that was charged, including by earlier daemons with its journal.
        queued: jobs that wait.
        running: jobs with workers.
        tenants: by name.
        counts: events since it started, by name.
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
