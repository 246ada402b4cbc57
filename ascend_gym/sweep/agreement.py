"""Consistency of two records of the same run: one must be a prefix of the other."""

from __future__ import annotations

from collections.abc import Sequence

from ascend_gym.core.errors import MisuseError
from ascend_gym.sweep.run_records import RunRecord


def goes_further(one: RunRecord, other: RunRecord) -> bool:
    """Return whether ``one`` contains more of the same run than ``other``."""
    return (one.steps, one.finished) > (other.steps, other.finished)


def check_agreement(
    one: RunRecord, one_chain: Sequence[str], other: RunRecord, other_chain: Sequence[str]
) -> None:
    """Check that two records with one id agree in the part that both have.

    Args:
        one: a run.
        one_chain: digest of its journal up to each evaluation; each depends on all before it.
        other: a run with the same id.
        other_chain: the same for ``other``.

    Raises:
        MisuseError: they differ; the message names both.
    """
    common = min(len(one_chain), len(other_chain))
    for index in range(common):
        if one_chain[index] != other_chain[index]:
            raise _conflict(one, other, f"in evaluation {index}")
    for shorter, longer in ((one, other), (other, one)):
        if shorter.finished and longer.steps > shorter.steps:
            raise _conflict(one, other, f"in length: the one in {shorter.source} had ended")
    if one.finished and other.finished and one.last_digest != other.last_digest:
        raise _conflict(one, other, f"in their ends ({one.stop_reason}, {other.stop_reason})")


def _conflict(one: RunRecord, other: RunRecord, where: str) -> MisuseError:
    return MisuseError(
        f"two runs of {one.variant} on {one.op_id} with seed {one.seed} differ {where}: that of {one.source} "
        f"and that of {other.source}. Same settings on the same simulator give the same run: was one made "
        "with another version, or on a device? Keep them in stores of their own, or leave one out"
    )
