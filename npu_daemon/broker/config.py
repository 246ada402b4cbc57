"""Configuration of a broker."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ascend_gym.core.private_folder import PrivateFolder
from ascend_gym.core.protocols import ResultStore
from npu_daemon.broker.fair_queue import FairQueue, Quota
from npu_daemon.broker.jobs import JobBook
from npu_daemon.broker.journal import JobJournal
from npu_daemon.broker.state import BrokerState
from npu_daemon.broker.status import StatusQuestions
from npu_daemon.broker.workforce import Devices, Workforce
from npu_daemon.security import CurvePolicy


@dataclass(frozen=True)
class BrokerConfig:
    """Configuration of a broker.

    Attributes:
        bind: address for clients.
        workers: number of worker processes, which build and run.
        devices: how many of them may run a candidate at a time.
        worker_command: returns the command line of a worker from the broker's address for workers, the
            worker's id and its folder for temporary files.
        store: stored results, which may be returned at once.
        private_folder: folder that only this user can access, for the workers' socket and scratch files;
            removed at the end.
        control_fd: descriptor (one end of a socket pair) on which the bound address is written once the
            daemon is ready; the daemon ends when the other end is closed.
        journal: persists jobs and charges; ``None`` for a daemon that ends with its clients.
        policy: access policy; ``None`` admits everyone who can reach the address.
        quota, quotas: quotas of tenants: the default, and by name.
        max_device_seconds: limit of the total device time.
        min_free_bytes: no evaluation begins while ``private_folder`` or one of ``written_folders`` has less
            room than this.
        written_folders: where else workers write.
        repairs: returns how many damaged folders of the cache were made again, by its part.
        questions: status requests from other threads.
    """

    bind: str
    workers: int
    devices: int
    worker_command: Callable[[str, str, Path], Sequence[str]]
    store: ResultStore
    private_folder: PrivateFolder
    control_fd: int | None = None
    journal: JobJournal | None = None
    policy: CurvePolicy | None = None
    quota: Quota = field(default_factory=Quota)
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    max_device_seconds: float | None = None
    min_free_bytes: int = 0
    written_folders: tuple[Path, ...] = ()
    repairs: Callable[[], Mapping[str, int]] = dict
    questions: StatusQuestions = field(default_factory=StatusQuestions)

    def room_problem(self) -> str:
        """Say where there is too little room; empty if there is enough."""
        for folder in (self.private_folder.path, *self.written_folders):
            free_bytes = shutil.disk_usage(folder).free
            if free_bytes < self.min_free_bytes:
                free, wanted = free_bytes / 2**20, self.min_free_bytes / 2**20
                return f"{folder} has {free:.0f} MiB free, and evaluations want {wanted:.0f} (--min-free-mib)"
        return ""

    def state(self) -> BrokerState:
        """Return the initial state of a broker."""
        book = JobBook(FairQueue(self.quotas, self.quota), self.max_device_seconds)
        workforce = Workforce(self.workers, Devices(self.devices))
        return BrokerState(workforce, book, keeps_jobs=self.journal is not None)
