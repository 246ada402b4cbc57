"""A time that no kernel can be faster than: the roof of the memory over the bytes that a case must move."""

from __future__ import annotations

from ascend_gym.core.records import Case, OpSpec
from npu_daemon.simulator.chips import Chip


def floor_us(spec: OpSpec, case: Case, chip: Chip) -> float:
    """Return how long a launch for ``case`` takes at least, in microseconds, whatever the kernel does.

    The roofline bound (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009) with the compulsory traffic
    of the case in place of what a kernel happens to move::

        floor = launch + max(inputs / HBM rate, (inputs + outputs) / L2 rate)

    Inputs lie in HBM and are read once, if all of them bear on the outputs; outputs are written once, to the
    cache. Launch is what the first block of an empty kernel costs. Arithmetic has no part in it: how much
    of it an operator needs is not known.
    """
    read_bytes = sum(tensor.size_bytes for tensor in case.inputs) if spec.reads_all_inputs else 0
    written_bytes = sum(tensor.size_bytes for tensor in case.outputs if not tensor.open)
    moving_us = max(
        _moving_us(chip, "hbm_gb_per_s", read_bytes),
        _moving_us(chip, "l2_gb_per_s", read_bytes + written_bytes),
    )
    return _figure(chip, "launch_us") + _figure(chip, "block_start_us") + moving_us


def _moving_us(chip: Chip, rate: str, moved_bytes: int) -> float:
    return moved_bytes / _figure(chip, rate) / 1e3


def _figure(chip: Chip, name: str) -> float:
    return float(chip.timing[name].value)
