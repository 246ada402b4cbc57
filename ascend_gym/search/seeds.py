"""Seeds that depend on what they are for, never on who asks first."""

from __future__ import annotations

from ascend_gym.core.digest import digest_of

_MASK = 2**31 - 1


def derived_seed(run_seed: int, *purpose: str | int) -> int:
    """Return a seed in [0, 2**31) for one purpose of a run.

    ``derived_seed(7, "sample", 3)`` is the same however many workers share the run, and unrelated to
    that of any other purpose. 31 bits pass through every model endpoint.
    """
    return int(digest_of("seed", run_seed, list(purpose))[:16], 16) & _MASK
