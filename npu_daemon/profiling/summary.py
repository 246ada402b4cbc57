"""Summary of a launch and its roofline, as JSON-able values and on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from rich.console import Console
from rich.table import Table

from npu_daemon.profiling.launch_profile import PIPES, LaunchProfile
from npu_daemon.simulator.profile import profile_of

# Pipes with a rate of their own; copies to and from global memory depend on bandwidth shared by all cores.
_OWN_PACE = {"aic": ("scalar", "mac", "mte1", "fixpipe"), "aiv": ("scalar", "vec")}

_SHOWN_FLOORS = 4
_SHOWN_CONFLICTS = 0.05  # of the cycles of an instruction
_CLOCK_HZ = 50e6  # of the system counter (docs/hardware.md section 1)


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


def launch_summary(launch: LaunchProfile) -> dict[str, Any]:
    """Return profile, roofline and clock reads of one launch."""
    return {
        "launch": launch.index,
        "kernel": launch.kernel,
        "block_dim": launch.block_dim,
        "chip": launch.chip.name,
        "task_duration_us": launch.task_us,
        "kernel_us": launch.kernel_us,
        "profile": profile_of(dict(launch.price), launch.block_dim, launch.chip).model_dump(),
        "roofline": asdict(roofline_of(launch)),
        "clock_reads_us": launch.clock_reads_us(),
        "bank_conflicts": dict(launch.price["bank_conflicts"]),
        "ub_taken_bytes": launch.ub_taken_bytes,
        "stalls": [each.model_dump(mode="json") for each in launch.stalls],
        "warnings": [each.model_dump(mode="json") for each in launch.warnings],
    }


def print_launch(console: Console, launch: LaunchProfile) -> None:
    """Print durations, the busy time of each pipe, and the roofline."""
    roofline = roofline_of(launch)
    console.print(
        f"launch {launch.index}: {launch.kernel}, {launch.block_dim} blocks on {launch.chip.name}: "
        f"task {launch.task_us:.2f} us, kernel {launch.kernel_us:.2f} us"
    )
    console.print(_pipe_table(launch))
    console.print(f"bound by {roofline.bound_by}: busy {roofline.bound_share:.1%} of the time of its cores")
    for floor in roofline.floors[:_SHOWN_FLOORS]:
        console.print(
            f"floor {floor.floor_us:10.2f} us  {floor.floor_us / roofline.kernel_us:6.1%}  "
            f"{floor.resource}: {floor.reason}"
        )
    console.print(f"reached {roofline.reached:.1%} of the highest floor ({roofline.floors[0].resource})")
    if launch.ub_taken_bytes is not None:
        console.print(f"buffers take {launch.ub_taken_bytes} of {launch.chip.ub_bytes} bytes of UB")
    _print_clock(console, launch)
    _print_conflicts(console, launch)
    for stall in launch.stalls:
        told = f"{stall.pipe} waits {stall.wait_ratio:.1%} before {stall.at}, for {stall.waits_for}"
        console.print(told, markup=False, highlight=False)
    for warning in launch.warnings:
        console.print(f"warning: {warning}", markup=False, highlight=False)


def _print_conflicts(console: Console, launch: LaunchProfile) -> None:
    """Print the vector instructions that lose time to bank conflicts, the most expensive first."""
    conflicts = launch.price["bank_conflicts"]
    for name in sorted(conflicts, key=lambda each: -conflicts[each]["lost_cycles"]):
        lost, cycles = conflicts[name]["lost_cycles"], conflicts[name]["cycles"]
        if lost >= _SHOWN_CONFLICTS * cycles:
            lost_us = launch.microseconds(lost / len(launch.cores))
            console.print(
                f"bank conflicts: {name} loses {lost_us:.2f} us a core, "
                f"{lost / cycles:.0%} of its repeats: operands share bank groups (addresses that differ by a "
                "multiple of 512 bytes), or a result shares banks with one"
            )


def _pipe_table(launch: LaunchProfile) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("cores", "time us", *PIPES):
        table.add_column(heading, justify="right")
    for kind in launch.kinds():
        cores = launch.cores_of(kind)
        total = sum(core["total_cycles"] for core in cores)
        shares = [sum(core[f"{pipe}_cycles"] for core in cores) / total if total else 0.0 for pipe in PIPES]
        time_us = launch.microseconds(total / len(cores))
        table.add_row(f"{len(cores)} {kind}", f"{time_us:.2f}", *(f"{share:.1%}" for share in shares))
    return table


def _print_clock(console: Console, launch: LaunchProfile) -> None:
    """Print the times between reads of the system counter, which are only known after pricing."""
    for number, reads in enumerate(launch.clock_reads_us()):
        for first, second in pairwise(reads):
            ticks = round((second - first) * _CLOCK_HZ / 1e6)
            console.print(
                f"core {number}: {second - first:.3f} us ({ticks} ticks) between reads of GetSystemCycle"
            )
