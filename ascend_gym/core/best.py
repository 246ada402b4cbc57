"""When a candidate becomes the best of a run or an episode, and how much faster it is."""

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


def speedup(before_us: float | None, after_us: float | None) -> float | None:
    """Return how many times faster it became; ``None`` unless both latencies are known."""
    return None if before_us is None or after_us is None else before_us / after_us
