"""How busy the processors of this host are."""

from __future__ import annotations

import math
import os
from pathlib import Path

_LOAD = Path("/proc/loadavg")


def spare_processor() -> bool:
    """Whether two programs can run now without taking a processor from what runs already."""
    return _running() < len(os.sched_getaffinity(0))


def none_waits() -> bool:
    """Whether everything that can run now has a processor."""
    return _running() <= len(os.sched_getaffinity(0))


def _running() -> float:
    """Return how many threads of this host can run now, this one included; infinite if that is not known."""
    try:
        return int(_LOAD.read_text("ascii").split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return math.inf
