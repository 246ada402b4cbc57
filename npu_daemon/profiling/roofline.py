"""Roofline of a launch: what bounds it, its lower bounds, and how close it comes to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npu_daemon.profiling.launch_profile import PIPES, LaunchProfile

# Pipes with a rate of their own; copies to and from global memory depend on bandwidth shared by all cores.
_OWN_PACE = {"aic": ("scalar", "mac", "mte1", "fixpipe"), "aiv": ("scalar", "vec")}


@dataclass(frozen=True)
class Floor:
    """A lower bound of the launch's time, given the instructions that it issues.

    Attributes:
        resource: resource that needs this time.
        floor_us: lower bound in microseconds.
        reason: origin of the figure.
    """

    resource: str
    floor_us: float
    reason: str


@dataclass(frozen=True)
class Roofline:
    """Summary of one launch.

    Attributes:
        bound_by: the busiest pipe, such as ``aiv mte2``.
        bound_share: busy share of that pipe in the time of its cores, at most 1.
        floors: lower bounds, highest first.
        kernel_us: time of the kernel without launch, in microseconds.
        reached: highest floor divided by ``kernel_us``.
    """

    bound_by: str
    bound_share: float
    floors: tuple[Floor, ...]
    kernel_us: float
    reached: float


def roofline_of(launch: LaunchProfile) -> Roofline:
    """Return the roofline of a launch.

    The floors keep the kernel's demand on each resource and assume perfect overlap and an even
    distribution over all cores of the chip.
    """
    floors = sorted(_floors(launch), key=lambda floor: -floor.floor_us)
    name, share = max(_busy_shares(launch), key=lambda pair: pair[1])
    return Roofline(
        name, min(1.0, share), tuple(floors), launch.kernel_us, floors[0].floor_us / launch.kernel_us
    )


def _busy_shares(launch: LaunchProfile) -> Iterator[tuple[str, float]]:
    for kind in launch.kinds():
        cores = launch.cores_of(kind)
        total = sum(core["total_cycles"] for core in cores)
        for pipe in PIPES:
            busy = sum(core[f"{pipe}_cycles"] for core in cores)
            yield f"{kind} {pipe}", busy / total if total else 0.0


def _floors(launch: LaunchProfile) -> Iterator[Floor]:
    figures = launch.chip.timing
    for kind in launch.kinds():
        count = int(launch.chip.geometry[f"{kind}_cores"].value)
        for pipe in _OWN_PACE[kind]:
            cycles = sum(core[f"{pipe}_cycles"] for core in launch.cores_of(kind)) / count
            reason = f"its instructions, spread over {count} cores"
            yield Floor(f"{kind} {pipe}", launch.microseconds(cycles), reason)
    moved_bytes = _total(launch, "read_bytes") + _total(launch, "written_bytes")
    main_bytes = _total(launch, "main_read_bytes") + _total(launch, "main_written_bytes")
    yield _bandwidth_floor("L2", moved_bytes, float(figures["l2_gb_per_s"].value))
    yield _bandwidth_floor("HBM", main_bytes, float(figures["hbm_gb_per_s"].value))


def _bandwidth_floor(resource: str, moved_bytes: float, gb_per_s: float) -> Floor:
    reason = f"{moved_bytes / 1e6:.1f} MB at {gb_per_s:.0f} GB/s"
    return Floor(resource, moved_bytes / gb_per_s / 1e3, reason)


def _total(launch: LaunchProfile, field: str) -> float:
    return float(sum(core[field] for core in launch.cores))
