"""Calls the pricing program on a trace."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase
from ascend_gym.core.status import Status
from npu_daemon.simulator.chips import Chip
from npu_daemon.simulator.toolchain import Toolchain

PRICE_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class TimelineRequest:
    """Asks for what each pipe did when: lines ``CORE PIPE NAME START END BYTES`` in cycles.

    Attributes:
        path: file to write.
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
) -> dict[str, Any] | Failure:
    """Return what the pricing program says about a trace: cycles, instructions and bytes of each core.

    Args:
        toolchain: holds the program.
        trace: trace of one launch, written by an untrusted process.
        chip: gives the figures; they are written next to the trace.
        tensor_ranges: lines ``in|out address bytes name`` of the tensors that the trace must account for.
        timeline: also write what each pipe did when.
        timeout_s: wall seconds the program may take.
    """
    figures = trace.with_name(f"{trace.name}.chip")
    figures.write_text(chip.pricing_text(), encoding="ascii")
    command = [str(toolchain.price_program), str(trace), str(figures), str(tensor_ranges)]
    if timeline is not None:
        command += [str(timeline.path), str(timeline.max_events)]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return _failure(Status.TIMEOUT, f"the kernel issues more than can be priced in {timeout_s:g} s")
    if answer.returncode != 0:
        return _failure(Status.GUARD_REJECTED, f"the trace cannot be priced: {answer.stderr.strip()}")
    price: dict[str, Any] = json.loads(answer.stdout)
    return price


def _failure(status: Status, message: str) -> Failure:
    return Failure(status, (Diagnostic(phase=Phase.PRICE, message=message),))
