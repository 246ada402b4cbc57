"""One priced launch, the input of all reports (terminal, CSV files, trace)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_gym.core.records import Diagnostic, Stall
from npu_daemon.simulator.chips import Chip

PIPES = ("scalar", "vec", "mac", "mte1", "mte2", "mte3", "fixpipe")


@dataclass(frozen=True)
class LaunchProfile:
    """One launch of a kernel and its price.

    Attributes:
        index: number of the launch in the run, from 0.
        kernel: name of the kernel.
        block_dim: blocks launched.
        chip: what it was priced on.
        price: JSON of the pricing program; its ``cores`` lie group by group, the cube core first.
        timeline: events of the launch as the pricing program wrote them, if they were asked for.
        warnings: what the run warned of.
        stalls: the longest waits of a core by line of the source, where they were looked for.
        ub_taken_bytes: how much of UB the buffers take on the vector core where they take most, if known.
    """

    index: int
    kernel: str
    block_dim: int
    chip: Chip
    price: Mapping[str, Any]
    timeline: Path | None = None
    warnings: tuple[Diagnostic, ...] = ()
    stalls: tuple[Stall, ...] = ()
    ub_taken_bytes: int | None = None

    @property
    def task_us(self) -> float:
        """Duration of the launch including its overhead, in microseconds."""
        return float(self.price["task_us"])

    @property
    def kernel_us(self) -> float:
        """Time from the start of the first block to the end of the last, in microseconds."""
        return self.microseconds(float(self.price["kernel_cycles"]))

    @property
    def cores(self) -> Sequence[Mapping[str, Any]]:
        """Counters of each core that ran blocks."""
        cores: Sequence[Mapping[str, Any]] = self.price["cores"]
        return cores

    def kinds(self) -> list[str]:
        """Return the kinds of cores that ran, of ``aic`` and ``aiv``."""
        return sorted({str(core["kind"]) for core in self.cores})

    def cores_of(self, kind: str) -> list[Mapping[str, Any]]:
        """Return the cores of one kind."""
        return [core for core in self.cores if core["kind"] == kind]

    def microseconds(self, cycles: float) -> float:
        """Convert core cycles of the chip to microseconds."""
        return cycles / self.chip.clock_hz * 1e6

    def core_labels(self) -> list[tuple[int, str]]:
        """Return the group of each core and its name in the group, such as ``(3, "vector1")``."""
        kinds = [str(core["kind"]) for core in self.cores]
        cubes = kinds.count("aic")
        vectors = kinds.count("aiv")
        groups = cubes or vectors
        group_cores = len(kinds) // groups
        labels = []
        for number, kind in enumerate(kinds):
            group, position = divmod(number, group_cores)
            before = kinds[group * group_cores : number].count(kind)
            labels.append((group, f"{'cube' if kind == 'aic' else 'vector'}{before}"))
            assert position < group_cores
        return labels

    def clock_reads_us(self) -> list[list[float]]:
        """Return the times at which each core read the system counter, in microseconds of kernel time."""
        return [[self.microseconds(cycle) for cycle in core["clock_reads"]] for core in self.cores]
