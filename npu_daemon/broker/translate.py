"""Conversion of workers' messages into events, and of actions into messages."""

from __future__ import annotations

from ascend_gym.core.codec import Kind, WireMessage
from ascend_gym.core.records import DaemonInfo, DeviceGrant, Diagnostic, EvalResult, Phase
from npu_daemon.broker.events import (
    Busy,
    DeviceFreed,
    DeviceWanted,
    Event,
    GrantDevice,
    Ping,
    Reply,
    SendJob,
    WorkerBeat,
    WorkerReady,
    WorkerResult,
)


def worker_event(worker_id: str, message: WireMessage) -> Event | None:
    """Return the event of a worker's message; ``None`` if workers do not send such messages."""
    lease = (worker_id, message.request_id, message.attempt)
    if isinstance(message.payload, DaemonInfo):
        return WorkerReady(worker_id, message.payload)
    if isinstance(message.payload, EvalResult):
        return WorkerResult(*lease, message.payload)
    if message.kind is Kind.BEAT:
        return WorkerBeat(*lease)
    if message.kind is Kind.WANT:
        return DeviceWanted(*lease)
    if message.kind is Kind.FREED:
        return DeviceFreed(*lease)
    return None


def client_message(action: Reply | Busy | Ping) -> WireMessage:
    """Return the message of an action for a client."""
    if isinstance(action, Reply):
        return WireMessage(Kind.RESULT, action.request_id, payload=action.result)
    if isinstance(action, Busy):
        complaint = Diagnostic(phase=Phase.SERVICE, message=action.reason)
        return WireMessage(Kind.BUSY, action.request_id, payload=complaint)
    return WireMessage(Kind.BEAT)


def worker_message(action: SendJob | GrantDevice) -> WireMessage:
    """Return the message of an action for a worker."""
    if isinstance(action, SendJob):
        return WireMessage(Kind.JOB, action.job_id, action.attempt, action.request)
    grant = DeviceGrant(device=action.device)
    return WireMessage(Kind.GRANT, action.job_id, action.attempt, grant)
