"""What a candidate is charged for: every task that ran between two launches of the cache-cleaning kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npu_daemon.cann.msprof_files import DeviceTask

CLEANER = "asg_l2_clean"
"""Prefix of the names of our own kernel, which is not billed."""


class BillingError(ValueError):
    """The tasks do not fall into equal windows; the message says how."""


@dataclass(frozen=True)
class Window:
    """What ran on the device for one call of the operator."""

    tasks: tuple[DeviceTask, ...]

    @property
    def billed_us(self) -> float:
        """Time of all tasks of the call."""
        return sum(task.duration_us for task in self.tasks)

    @property
    def main(self) -> DeviceTask:
        """The longest of them."""
        return max(self.tasks, key=lambda task: task.duration_us)


def split_windows(tasks: Sequence[DeviceTask], rounds: int) -> list[Window]:
    """Return the windows of ``rounds`` equal calls.

    A call may launch several kernels, and all of them count. Kernels of one name are in the order of their
    launch; the order of different names is not known and does not matter: each name has to occur
    equally often in each window.

    Args:
        tasks: all that the profiler saw, our own kernel included.
        rounds: calls that were made.

    Raises:
        BillingError: nothing but our own kernel ran, or calls differ in what they launch.
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
