"""Evaluator over ZeroMQ, with automatic start of a private local daemon."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ascend_gym.client.local_daemon import (
    SHARED_DAEMONS,
    START_TIMEOUT_S,
    DaemonOptions,
    LocalDaemon,
)
from ascend_gym.client.zmq_evaluator import ZmqEvaluator
from ascend_gym.core.config import default_connect_timeout_s, default_daemon_addresses
from ascend_gym.core.errors import InfrastructureError, MisuseError

__all__ = ["DaemonOptions", "LocalDaemon", "ZmqEvaluator", "connect"]


def connect(
    address: str | Sequence[str] | None = None,
    *,
    options: DaemonOptions | None = None,
    connect_timeout_s: float | None = None,
    start_timeout_s: float = START_TIMEOUT_S,
) -> ZmqEvaluator:
    """Return an evaluator that uses one or several daemons; the first one is ready on return.

    Args:
        address: one or several daemon addresses. ``None`` uses those in ``ASCEND_GYM_DAEMON`` or, if that
            is unset, starts a private daemon for this process, which ends with the last evaluator
            that uses it.
        options: options for a private daemon.
        connect_timeout_s: how long a daemon may be unreachable; see ``ZmqEvaluator``. ``None``:
            ``ASCEND_GYM_CONNECT_TIMEOUT_S`` if that is set.
        start_timeout_s: how long a daemon may take to start; the first start builds the simulator.

    Raises:
        MisuseError: an address is invalid, the private daemon rejects the options, or the daemons' results
            are not comparable.
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
        connect_timeout_s=default_connect_timeout_s() if connect_timeout_s is None else connect_timeout_s,
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
