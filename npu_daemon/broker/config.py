"""What a broker is made with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ascend_gym.core.private_folder import PrivateFolder
from ascend_gym.core.protocols import ResultStore
from npu_daemon.broker.fair_queue import FairQueue, Quota
from npu_daemon.broker.jobs import JobBook
from npu_daemon.broker.journal import JobJournal
from npu_daemon.broker.state import BrokerState
from npu_daemon.broker.status_questions import StatusQuestions
from npu_daemon.broker.workforce import Devices, Workforce
from npu_daemon.security import CurvePolicy


@dataclass(frozen=True)
class BrokerConfig:
    """What a broker serves.

    Attributes:
        bind: where clients connect.
        workers: number of worker processes, which build.
        devices: how many of them may run something at a time.
        worker_command: command line of a worker, from the broker's address for workers, the worker's id and
            its folder for temporary files.
        store: results that may be returned at once.
        private_folder: folder of this user alone for the workers' socket and scratch files; removed at the
            end.
        control_fd: descriptor (one end of a socket pair) on which the bound address is written when the
            daemon is ready; the daemon ends when the other end is closed.
        journal: keeps what has to outlive the broker; ``None`` for a daemon that ends with its clients.
        policy: who may connect; ``None`` for everybody who can reach the address.
        quota, quotas: what tenants may have: by default, and by name.
        max_device_seconds: device time that may be charged in all.
        questions: of other threads about the status.
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
    questions: StatusQuestions = field(default_factory=StatusQuestions)

    def state(self) -> BrokerState:
        """Return the state of a broker that has not begun."""
        book = JobBook(FairQueue(self.quotas, self.quota), self.max_device_seconds)
        workforce = Workforce(self.workers, Devices(self.devices))
        return BrokerState(workforce, book, keeps_jobs=self.journal is not None)
