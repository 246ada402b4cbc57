"""Input events of the broker, and the actions it may decide on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ascend_gym.core.records import Charge, DaemonInfo, EvalRequest, EvalResult

ClientId: TypeAlias = bytes
LOCAL_TENANT = "local"


class Name(NamedTuple):
    """Identity of a client's request; the same name always means the same job."""

    client: ClientId
    request_id: str


@dataclass(frozen=True)
class OfLease:
    """Base of events about one lease: a worker's attempt at a job."""

    worker_id: str
    job_id: str
    attempt: int


# --- events: what happened -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """The broker has started."""


@dataclass(frozen=True)
class SavedJob:
    """A job that was accepted but not answered when the last broker ended."""

    name: Name
    tenant: str
    request: EvalRequest


@dataclass(frozen=True)
class SavedCharge:
    """The charge of a request by an earlier broker."""

    name: Name
    tenant: str
    charge: Charge


@dataclass(frozen=True)
class Restore:
    """State left by an earlier broker; precedes all other events. Charges and answers: oldest first."""

    jobs: tuple[SavedJob, ...] = ()
    answers: tuple[tuple[Name, EvalResult], ...] = ()
    charges: tuple[SavedCharge, ...] = ()


@dataclass(frozen=True)
class Submit:
    """A client requests an evaluation; ``stored`` is an earlier result that may be returned."""

    client: ClientId
    request_id: str
    request: EvalRequest
    stored: EvalResult | None = None
    tenant: str = LOCAL_TENANT


@dataclass(frozen=True)
class Cancel:
    """A client cancels a request."""

    client: ClientId
    request_id: str


@dataclass(frozen=True)
class ClientGone:
    """A client cannot be reached; it may return."""

    client: ClientId


@dataclass(frozen=True)
class WorkerReady:
    """A worker has started and can take a job."""

    worker_id: str
    info: DaemonInfo


@dataclass(frozen=True)
class WorkerBeat(OfLease):
    """Heartbeat of a worker for its current job."""


@dataclass(frozen=True)
class DeviceWanted(OfLease):
    """A worker has finished building and requests a device for a run."""


@dataclass(frozen=True)
class DeviceFreed(OfLease):
    """A worker has finished running on its device."""


@dataclass(frozen=True)
class WorkerGone:
    """A worker process has ended; ``killed`` if by SIGKILL."""

    worker_id: str
    reason: str
    killed: bool = False


@dataclass(frozen=True)
class WorkerResult(OfLease):
    """A worker answers a job."""

    result: EvalResult


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True)
class Resize:
    """Change the number of workers."""

    workers: int


@dataclass(frozen=True)
class Room:
    """Whether there is room on the disk for further evaluations; ``problem`` is empty if there is."""

    problem: str = ""


@dataclass(frozen=True)
class Expel:
    """End all jobs of a tenant, unanswered; its clients have a name that begins with ``prefix``."""

    prefix: bytes


@dataclass(frozen=True)
class Drain:
    """Finish running jobs, refuse everything else, then stop."""


Event: TypeAlias = (
    Start
    | Restore
    | Submit
    | Cancel
    | ClientGone
    | WorkerReady
    | WorkerBeat
    | DeviceWanted
    | DeviceFreed
    | WorkerGone
    | WorkerResult
    | Tick
    | Resize
    | Room
    | Expel
    | Drain
)


# --- actions: what to do -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reply:
    """Send a result to a client."""

    client: ClientId
    request_id: str
    result: EvalResult


@dataclass(frozen=True)
class Busy:
    """Report to a client that its request was not accepted and may be submitted later."""

    client: ClientId
    request_id: str
    reason: str


@dataclass(frozen=True)
class Ping:
    """Report to a client that its requests are in progress; if this cannot be sent, the client is gone."""

    client: ClientId


@dataclass(frozen=True)
class SendJob(OfLease):
    """Send a job to a worker."""

    request: EvalRequest


@dataclass(frozen=True)
class GrantDevice(OfLease):
    """Let a worker run its job on a device."""

    device: int


@dataclass(frozen=True)
class StartWorker:
    """Start a worker process under this id."""

    worker_id: str


@dataclass(frozen=True)
class KillWorker:
    """Kill a worker process; ``WorkerGone`` follows when it has ended."""

    worker_id: str


@dataclass(frozen=True)
class SaveJob:
    """Persist a job until it is answered or dropped."""

    job: SavedJob


@dataclass(frozen=True)
class SaveAnswer:
    """Replace a persisted job by its answer and charge, atomically."""

    name: Name
    result: EvalResult
    tenant: str
    charge: Charge | None


@dataclass(frozen=True)
class DropJob:
    """Remove a persisted job, because nobody waits for it."""

    name: Name


@dataclass(frozen=True)
class Ready:
    """The first worker is ready: the daemon can evaluate."""


@dataclass(frozen=True)
class Stop:
    """End the daemon; ``failure`` is the reason, unless the stop was requested."""

    failure: str | None = None


Record: TypeAlias = SaveJob | SaveAnswer | DropJob
Action: TypeAlias = (
    Reply | Busy | Ping | SendJob | GrantDevice | StartWorker | KillWorker | Record | Ready | Stop
)
