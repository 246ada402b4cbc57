"""Rows of evokernel.py: what device and simulator say of each operator, verdicts on outputs, and tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ascend_gym.core.append_log import write_whole

TOLERANCE = 1e-2  # absolute and relative, as the data set compares
BUILT, RIGHT, WRONG, TIMEOUT, UNKNOWN = "built", "right", "wrong", "not finished", "unknown"


@dataclass
class Row:
    """What device and simulator say of an operator.

    Attributes:
        operator: its name.
        device: ``build_error``, ``wrong`` or ``right``.
        here: ``right``, ``wrong``, ``unknown`` (wrong, but the arguments are guessed), ``not finished``,
            ``built`` (not run: ``why``), or the status of the end.
        why: the first diagnostic, or why it was not run.
        sizes: constants of the reference that were made smaller.
        in_order: after a race, what comes of the same run when nobody looks for races.
        error: largest difference, in the largest expected value.
        alike: how alike names of the binding and the reference are, at least: 1 is the same.
        device_ms: of a framework's call, whole.
        task_us: simulated, of the case that was run.
        cores: that it was launched on.
        seconds: wall time of the run here.
    """

    operator: str
    device: str
    here: str = BUILT
    why: str = ""
    sizes: str = ""
    in_order: str = ""
    error: float = 0.0
    alike: float = 0.0
    device_ms: float = 0.0
    task_us: float = 0.0
    cores: int = 0
    seconds: float = 0.0


def judged(output: np.ndarray[Any, Any], expected: Sequence[np.ndarray[Any, Any]]) -> tuple[str, float]:
    """Return whether an output is one of the expected tensors, and the least error in its largest value.

    Args:
        output: elements in order.
        expected: tensors in order of their elements; those of other sizes do not count.
    """
    nearest = float("inf")
    if not output.any():
        return WRONG, nearest
    for value in expected:
        if value.size != output.size:
            continue
        apart = np.abs(output - value)
        apart[np.isnan(output) & np.isnan(value) | (output == value)] = 0.0
        finite = np.abs(value[np.isfinite(value)])
        error = float(apart.max(initial=0.0)) / max(float(finite.max(initial=0.0)), 1e-30)
        if not np.isnan(error) and bool(np.all(apart <= TOLERANCE + TOLERANCE * np.abs(value))):
            return RIGHT, error
        nearest = min(nearest, float("inf") if np.isnan(error) else error)
    return WRONG, nearest


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the counts and the operators that differ, in Markdown."""
    yield "| device | here | operators |\n|---|---|---|"
    for (device, here), number in sorted(Counter((row.device, row.here) for row in rows).items()):
        yield f"| {device} | {here} | {number} |"
    yield "\n| operator | device | here | why |\n|---|---|---|---|"
    for row in rows:
        if row.device != row.here and row.here not in (BUILT, TIMEOUT):
            order = f"; in order: {row.in_order}" if row.in_order else ""
            why = f"{row.why}{order} (error {row.error:.2g}) {row.sizes}"
            yield f"| {row.operator} | {row.device} | {row.here} | {why} |"
    yield "\n| operator | cores | device, ms | simulated, ms | ratio |\n|---|---|---|---|---|"
    for row in rows:
        if row.here == RIGHT and row.sizes == "{}" and row.device_ms:
            here_ms = row.task_us / 1000
            times = f"{row.device_ms} | {here_ms:.3f} | {here_ms / row.device_ms:.2f}"
            yield f"| {row.operator} | {row.cores} | {times} |"


def keep(row: Row, rows: list[Row], file: Path) -> None:
    """Add a row to the others, and to the file."""
    rows.append(row)
    print(json.dumps(asdict(row)), flush=True)
    write_whole(file, (json.dumps([asdict(each) for each in rows], indent=1) + "\n").encode())
