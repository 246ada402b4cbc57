"""When a candidate becomes the best of a run or an episode."""

from __future__ import annotations

from ascend_gym.core.records import Candidate, OpSpec


def is_unwritten(spec: OpSpec, best: Candidate) -> bool:
    """Return whether an operator has no sources and no candidate was correct yet, given the best so far."""
    return not spec.has_sources and best.digest == spec.baseline.digest


def becomes_best(latency_us: float | None, best_us: float | None, *, unwritten: bool) -> bool:
    """Say whether a measured candidate becomes the best of its run.

    Args:
        latency_us: its latency; ``None`` for one that is not correct.
        best_us: lowest latency so far; ``None`` before the baseline is measured.
        unwritten: whether the operator has no sources and no candidate was correct yet: what stands as best
            is then only the price of framework calls, and the first correct candidate replaces it.
    """
    return latency_us is not None and (best_us is None or unwritten or latency_us < best_us)
