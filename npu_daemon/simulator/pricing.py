"""Calls the pricing program on a trace."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase
from ascend_gym.core.status import Status
from npu_daemon.simulator.chips import Chip
from npu_daemon.simulator.toolchain import Toolchain

PRICE_TIMEOUT_S = 120.0


def price_trace(
    toolchain: Toolchain, trace: Path, chip: Chip, tensor_ranges: Path, timeout_s: float = PRICE_TIMEOUT_S
) -> dict[str, Any] | Failure:
    """Return what the pricing program says about a trace: cycles, instructions and bytes of each core.

    Args:
        toolchain: holds the program.
        trace: trace of one launch, written by an untrusted process.
        chip: gives the figures; they are written next to the trace.
        tensor_ranges: lines ``in|out address bytes name`` of the tensors that the trace must account for.
        timeout_s: wall seconds the program may take.
    """
    figures = trace.with_name(f"{trace.name}.chip")
    figures.write_text(chip.pricing_text(), encoding="ascii")
    command = [str(toolchain.price_program), str(trace), str(figures), str(tensor_ranges)]
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
