"""What can happen to the broker (events) and what it can decide to do (actions)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ascend_gym.core.records import Charge, DaemonInfo, EvalRequest, EvalResult

ClientId: TypeAlias = bytes
LOCAL_TENANT = "local"


class Name(NamedTuple):
    """What a client calls a request: the same name means the same job, for ever."""

    client: ClientId
    request_id: str


@dataclass(frozen=True)
class OfLease:
    """Base of what is about one lease: a worker's attempt at a job."""

    worker_id: str
    job_id: str
    attempt: int


# --- events: what happened -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """The broker is up."""


@dataclass(frozen=True)
class SavedJob:
    """A job that was accepted and not answered when the last broker ended."""

    name: Name
    tenant: str
    request: EvalRequest


@dataclass(frozen=True)
class SavedCharge:
    """What was charged for a request by an earlier broker."""

    name: Name
    tenant: str
    charge: Charge


@dataclass(frozen=True)
class Restore:
    """What an earlier broker left; comes before everything else. Charges and answers are the oldest first."""

    jobs: tuple[SavedJob, ...] = ()
    answers: tuple[tuple[Name, EvalResult], ...] = ()
    charges: tuple[SavedCharge, ...] = ()


@dataclass(frozen=True)
class Submit:
    """A client asks for an evaluation; ``stored`` is an earlier result that may be returned."""

    client: ClientId
    request_id: str
    request: EvalRequest
    stored: EvalResult | None = None
    tenant: str = LOCAL_TENANT


@dataclass(frozen=True)
class Cancel:
    """A client withdraws a request."""

    client: ClientId
    request_id: str


@dataclass(frozen=True)
class ClientGone:
    """A client cannot be reached; it may come back."""

    client: ClientId


@dataclass(frozen=True)
class WorkerReady:
    """A worker has started and can take a job."""

    worker_id: str
    info: DaemonInfo


@dataclass(frozen=True)
class WorkerBeat(OfLease):
    """A worker says that it works on a job."""


@dataclass(frozen=True)
class DeviceWanted(OfLease):
    """A worker has built what its job needs and wants a device to run it on."""


@dataclass(frozen=True)
class DeviceFreed(OfLease):
    """A worker has finished running on its device."""


@dataclass(frozen=True)
class WorkerGone:
    """The process of a worker has ended; ``killed`` if somebody or the kernel sent it SIGKILL."""

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
    """Keep another number of workers from now on."""

    workers: int


@dataclass(frozen=True)
class Drain:
    """Finish what runs, refuse everything else, then stop."""


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
    """Tell a client that its request was not accepted and may be submitted later."""

    client: ClientId
    request_id: str
    reason: str


@dataclass(frozen=True)
class Ping:
    """Tell a client that its requests are in hand; if that cannot be told, the client is gone."""

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
    """Keep a job on record until it is answered or dropped."""

    job: SavedJob


@dataclass(frozen=True)
class SaveAnswer:
    """Replace a job on record by its answer and what it was charged, in one step."""

    name: Name
    result: EvalResult
    tenant: str
    charge: Charge | None


@dataclass(frozen=True)
class DropJob:
    """Take a job off the record, because nobody waits for it."""

    name: Name


@dataclass(frozen=True)
class Ready:
    """The first worker is ready: the daemon can answer."""


@dataclass(frozen=True)
class Stop:
    """End the daemon; ``failure`` says why if that was not asked for."""

    failure: str | None = None


Record: TypeAlias = SaveJob | SaveAnswer | DropJob
Action: TypeAlias = (
    Reply | Busy | Ping | SendJob | GrantDevice | StartWorker | KillWorker | Record | Ready | Stop
)
