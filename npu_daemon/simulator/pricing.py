"""Calls the pricing program on a trace."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Phase
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
    trace: Path,
    chip: Chip,
    tensor_ranges: Path,
    timeline: TimelineRequest | None = None,
    timeout_s: float = PRICE_TIMEOUT_S,
    cache: Path | None = None,
) -> dict[str, Any] | Failure:
    """Return what the pricing program says about a trace: cycles, instructions and bytes of each core.

    Args:
        toolchain: holds the program.
        trace: trace of one launch, written by an untrusted process.
        chip: gives the figures; they are written next to the trace.
        tensor_ranges: lines ``in|out address bytes name`` of the tensors that the trace must account for.
        timeline: also write what each pipe did when.
        timeout_s: wall seconds the program may take.
        cache: file beside the trace with what an earlier launch left in L2, if there was one; it then holds
            what this one leaves. By default the cache is empty.
    """
    figures = trace.with_name(f"{trace.name}.chip")
    figures.write_text(chip.pricing_text(), encoding="ascii")
    arguments: list[Path | str] = [figures, tensor_ranges]
    written = trace.with_name(f"{trace.name}.timeline")  # the program may write beside the trace only
    if timeline is not None:
        written.unlink(missing_ok=True)  # whatever the untrusted process called so
        arguments += [written, str(timeline.max_events)]
    if cache is not None:
        arguments += [cache] if timeline is not None else ["-", "0", cache]
    price = read_trace(
        toolchain.price_program, trace, arguments, phase=Phase.PRICE, verb="priced", timeout_s=timeout_s
    )
    if timeline is not None and not isinstance(price, Failure):
        shutil.move(written, timeline.path)
    return price
