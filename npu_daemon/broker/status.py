"""The status of a broker, for users and monitoring."""

from __future__ import annotations

from collections import Counter

from ascend_gym.core.records import DaemonStatus, TenantStatus
from npu_daemon.broker.jobs import Account
from npu_daemon.broker.state import BrokerState


def status_of(state: BrokerState, address: str, up_seconds: float) -> DaemonStatus:
    """Return the status of a broker."""
    book, devices = state.book, state.workforce.devices
    tenants = sorted({*book.queue.tenants(), *book.accounts.tenants})
    phases = Counter(worker.phase.value for worker in state.workforce.workers.values())
    return DaemonStatus(
        address=address,
        info=state.offer(),
        up_seconds=up_seconds,
        draining=state.draining,
        workers=dict(sorted(phases.items())),
        devices=devices.count,
        devices_held=len(devices.holders),
        device_held_seconds=devices.held_seconds,
        charged_device_seconds=book.accounts.device_seconds,
        queued=len(book.queue),
        running=len(state.workforce.leased()),
        tenants=tuple(_tenant(state, name) for name in tenants),
        counts=dict(sorted({**state.counts, **book.counts}.items())),
    )


def _tenant(state: BrokerState, name: str) -> TenantStatus:
    queue = state.book.queue
    account = state.book.accounts.tenants.get(name, Account())
    return TenantStatus(
        tenant=name,
        queued=queue.queued(name),
        running=queue.running(name),
        evaluations=account.evaluations,
        device_seconds=account.device_seconds,
    )
