"""Waiting for something to happen, with a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(done: Callable[[], bool], poll: Callable[[float], None], timeout_s: float) -> bool:
    """Call ``poll`` with the seconds that are left, at least once, until ``done`` or time is up.

    Returns:
        Whether it is done.
    """
    deadline_s = time.monotonic() + timeout_s
    remaining_s = timeout_s
    while remaining_s >= 0 and not done():
        poll(remaining_s)
        remaining_s = deadline_s - time.monotonic()
    return done()
