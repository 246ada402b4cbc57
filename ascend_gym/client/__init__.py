"""Evaluator over ZeroMQ and automatic start of a private local daemon."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ascend_gym.client.local_daemon import (
    SHARED_DAEMONS,
    START_TIMEOUT_S,
    DaemonOptions,
    LocalDaemon,
)
from ascend_gym.client.zmq_evaluator import CONNECT_TIMEOUT_S, ZmqEvaluator
from ascend_gym.core.config import default_daemon_addresses
from ascend_gym.core.errors import InfrastructureError, MisuseError

__all__ = ["DaemonOptions", "LocalDaemon", "ZmqEvaluator", "connect"]


def connect(
    address: str | Sequence[str] | None = None,
    *,
    options: DaemonOptions | None = None,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    start_timeout_s: float = START_TIMEOUT_S,
) -> ZmqEvaluator:
    """Return an evaluator on a daemon that is ready, or on several.

    Args:
        address: daemon to use, or several; ``None`` uses those that ``ASCEND_GYM_DAEMON`` names or, if that
            is unset, a private daemon that is started for this process and ends with the last evaluator
            that uses it.
        options: what a private daemon is started with.
        connect_timeout_s: how long a daemon may be unreachable.
        start_timeout_s: how long a daemon may take to get ready; the first start builds the simulator.

    Raises:
        MisuseError: it is not an address, the private daemon refuses the options, or daemons measure
            differently.
        DaemonUnreachableError: no daemon answers.
        InfrastructureError: the private daemon did not start.
    """
    addresses = (address,) if isinstance(address, str) else tuple(address or default_daemon_addresses())
    daemon = release = None
    if not addresses:
        daemon = SHARED_DAEMONS.acquire(options or DaemonOptions(), start_timeout_s)
        addresses = (daemon.address,)
        release = partial(SHARED_DAEMONS.release, daemon)
    evaluator = ZmqEvaluator(
        addresses,
        connect_timeout_s=connect_timeout_s,
        ready_timeout_s=start_timeout_s,
        private_daemon=daemon,
        on_close=release,
    )
    try:
        evaluator.describe()
    except (InfrastructureError, MisuseError):
        evaluator.close()
        raise
    return evaluator
