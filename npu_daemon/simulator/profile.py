"""The answer of the pricing program as a profile in the field names of msprof."""

from __future__ import annotations

from typing import Any

from ascend_gym.core.records import Profile
from npu_daemon.simulator.chips import Chip


def profile_of(price: dict[str, Any], block_dim: int, chip: Chip) -> Profile:
    """Build the profile of one launch.

    Args:
        price: JSON of the pricing program: cycles, instructions and bytes of each core.
        block_dim: number of blocks launched.
        chip: gives the clock.

    Times are means over the cores that ran blocks, in microseconds; ratios are sums over sums, as in msprof.
    """
    cores: list[dict[str, Any]] = price["cores"]

    def mean_us(field: str) -> float:
        return float(sum(core[field] for core in cores)) / len(cores) / chip.clock_hz * 1e6

    def total(field: str) -> int:
        return int(sum(core[field] for core in cores))

    aiv_time_us = mean_us("total_cycles")
    pipes = {name: mean_us(f"{name}_cycles") for name in ("vec", "scalar", "mte2", "mte3")}
    times = {f"aiv_{name}_time": time_us for name, time_us in pipes.items()}
    ratios = {f"aiv_{name}_ratio": time_us / aiv_time_us for name, time_us in pipes.items()}
    return Profile(
        task_duration_us=float(price["task_us"]),
        block_dim=block_dim,
        aiv_time=aiv_time_us,
        aiv_total_cycles=total("total_cycles"),
        gm_to_ub_bytes=total("gm_to_ub_bytes"),
        ub_to_gm_bytes=total("ub_to_gm_bytes"),
        aiv_mte2_instructions=total("mte2_instructions"),
        aiv_mte3_instructions=total("mte3_instructions"),
        aiv_vec_instructions=total("vec_instructions"),
        **times,
        **ratios,
    )
