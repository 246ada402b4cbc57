"""Latency of calls: all tasks that ran between two launches of the cache-cleaning kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npu_daemon.cann.msprof_files import DeviceTask

CLEANER = "asg_l2_clean"
"""Prefix of the name of our own kernel, whose time does not count."""


class BillingError(ValueError):
    """The tasks do not form equal windows; the message gives the reason."""


@dataclass(frozen=True)
class Window:
    """The tasks of one call of the operator."""

    tasks: tuple[DeviceTask, ...]

    @property
    def billed_us(self) -> float:
        """Total time of the call's tasks, in microseconds."""
        return sum(task.duration_us for task in self.tasks)

    @property
    def main(self) -> DeviceTask:
        """The longest task."""
        return max(self.tasks, key=lambda task: task.duration_us)


def split_windows(tasks: Sequence[DeviceTask], rounds: int) -> list[Window]:
    """Return the windows of ``rounds`` equal calls.

    A call may launch several kernels, and all of them count. Kernels of one name are in the order of their
    launch. The order of different names is unknown and does not matter, because each name must occur
    equally often in each window.

    Args:
        tasks: all tasks that the profiler recorded, including those of the cleaning kernel.
        rounds: number of calls.

    Raises:
        BillingError: only our own kernel ran, or calls launched different kernels.
    """
    by_name: dict[str, list[DeviceTask]] = {}
    for task in tasks:
        if not task.name.startswith(CLEANER):
            by_name.setdefault(task.name, []).append(task)
    if not by_name:
        raise BillingError(f"{rounds} calls of the operator launched nothing on the device")
    uneven = {name: len(found) for name, found in by_name.items() if len(found) % rounds}
    if uneven:
        raise BillingError(f"{rounds} equal calls launched different kernels: {uneven}")
    return [
        Window(
            tuple(
                task
                for found in by_name.values()
                for task in found[index * (len(found) // rounds) : (index + 1) * (len(found) // rounds)]
            )
        )
        for index in range(rounds)
    ]
