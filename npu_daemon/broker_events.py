"""What can happen to the broker (events) and what it can decide to do (actions)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ascend_gym.core.records import DeviceInfo, EvalRequest, EvalResult

ClientId: TypeAlias = bytes


# --- events: what happened -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """The broker is up."""


@dataclass(frozen=True)
class Submit:
    """A client asks for an evaluation; ``stored`` is an earlier result that may be returned."""

    client: ClientId
    request_id: str
    request: EvalRequest
    stored: EvalResult | None = None


@dataclass(frozen=True)
class Cancel:
    """A client withdraws a request."""

    client: ClientId
    request_id: str


@dataclass(frozen=True)
class ClientGone:
    """A client cannot be reached any more."""

    client: ClientId


@dataclass(frozen=True)
class WorkerReady:
    """A worker has started and can take a job."""

    worker_id: str
    device: DeviceInfo


@dataclass(frozen=True)
class WorkerBeat:
    """A worker says that it works on a job."""

    worker_id: str
    job_id: str
    attempt: int


@dataclass(frozen=True)
class WorkerGone:
    """The process of a worker has ended."""

    worker_id: str
    reason: str


@dataclass(frozen=True)
class WorkerResult:
    """A worker answers a job."""

    worker_id: str
    job_id: str
    attempt: int
    result: EvalResult


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True)
class Drain:
    """Finish what runs, refuse everything else, then stop."""


Event: TypeAlias = (
    Start | Submit | Cancel | ClientGone | WorkerReady | WorkerBeat | WorkerGone | WorkerResult | Tick | Drain
)


# --- actions: what to do -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reply:
    """Send a result to a client."""

    client: ClientId
    request_id: str
    result: EvalResult


@dataclass(frozen=True)
class SendJob:
    """Send a job to a worker."""

    worker_id: str
    job_id: str
    attempt: int
    request: EvalRequest


@dataclass(frozen=True)
class StartWorker:
    """Start a worker process under this id."""

    worker_id: str


@dataclass(frozen=True)
class KillWorker:
    """Kill a worker process; ``WorkerGone`` follows when it has ended."""

    worker_id: str


@dataclass(frozen=True)
class Ready:
    """The first worker is ready: the daemon can answer."""


@dataclass(frozen=True)
class Stop:
    """End the daemon; ``failure`` says why if that was not asked for."""

    failure: str | None = None


Action: TypeAlias = Reply | SendJob | StartWorker | KillWorker | Ready | Stop
