"""Calls the pricing program on a trace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Phase
from npu_daemon.sandbox import MemoryFile
from npu_daemon.simulator.chips import Chip
from npu_daemon.simulator.toolchain import Toolchain
from npu_daemon.simulator.trace_program import read_trace

PRICE_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class TimelineRequest:
    """Asks for what each pipe did when: lines ``CORE PIPE NAME START END BYTES`` in cycles.

    Attributes:
        path: file to write; its folder exists.
        max_events: how many events to write at most; the price says how many there were.
    """

    path: Path
    max_events: int


def price_trace(
    toolchain: Toolchain,
    trace: Path | MemoryFile,
    chip: Chip,
    tensor_ranges: str,
    timeline: TimelineRequest | None = None,
    timeout_s: float = PRICE_TIMEOUT_S,
    cache: Path | None = None,
) -> dict[str, Any] | Failure:
    """Return what the pricing program says about a trace: cycles, instructions and bytes of each core.

    Args:
        toolchain: holds the program.
        trace: trace of one launch, written by an untrusted process.
        chip: gives the figures.
        tensor_ranges: lines ``in|out address bytes name`` of the tensors that the trace must account for.
        timeline: also write what each pipe did when.
        timeout_s: wall seconds the program may take.
        cache: file with what an earlier launch left in L2, if there was one; it then holds what this one
            leaves. It lies in the folder of the timeline, if both are asked for. By default it is empty.
    """
    written: list[Path | str] = []
    if timeline is not None:
        written = [timeline.path, str(timeline.max_events)]
    if cache is not None:
        written = [*(written or ["-", "0"]), cache]
    folders = [each.resolve().parent for each in written if isinstance(each, Path)]
    with (
        MemoryFile.holding("chip", chip.pricing_text()) as figures,
        MemoryFile.holding("tensor_ranges", tensor_ranges) as ranges,
    ):
        return read_trace(
            toolchain.price_program,
            trace,
            [figures, ranges, *written],
            phase=Phase.PRICE,
            verb="priced",
            timeout_s=timeout_s,
            writes_in=folders[0] if folders else None,
        )
