"""What the check of races makes of reads of vector registers, on traces made by hand."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from traces import UB, S, V, hand_over, header, maximum, read_register, record, segment, set_flag, wait_flag

from npu_daemon.backends.simulator import SimulatorBackend

ALL = 7  # pipes
MAXIMUM, ANOTHER = maximum(0, 2), maximum(0x8000, 2)
MERGE = record("MrgSort", [(UB, 0x4000, 256, 1), (UB, 0x6000, 256, 1)], flag=3, repeats=1)


def race(simulator: SimulatorBackend, folder: Path, auto_sync: str, *records: bytes) -> dict[str, Any] | None:
    """Return the race of one block of these records."""
    trace, tensors = folder / "trace", folder / "tensors"
    trace.write_bytes(header() + segment(0, b"".join((*records, record("BlockEnd")))))
    tensors.write_text("")
    command = [str(simulator.toolchain.races_program), str(trace), str(tensors), auto_sync]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    found: dict[str, Any] | None = json.loads(answer.stdout)["race"]
    return found


UNORDERED = {
    "at once": (MAXIMUM, read_register()),
    "after a barrier of vectors": (MAXIMUM, record("PipeBarrier", pipes=(V, V)), read_register()),
    "after the flag of an earlier one": (MAXIMUM, hand_over(V, S), ANOTHER, read_register()),
    "between flag and wait": (MAXIMUM, set_flag(V, S), ANOTHER, wait_flag(V, S), read_register()),
    "counts of a merge": (MERGE, read_register(2)),
}
ORDERED = {
    "after a flag": (MAXIMUM, hand_over(V, S), read_register()),
    "after a barrier": (MAXIMUM, record("PipeBarrier", pipes=(ALL, ALL)), read_register()),
    "twice": (MAXIMUM, hand_over(V, S), read_register(), read_register()),
    "of two in turn": (MAXIMUM, ANOTHER, hand_over(V, S), read_register()),
    "set again": (MAXIMUM, hand_over(V, S), read_register(), ANOTHER),
    "another register": (MAXIMUM, MERGE, read_register(1)),
    "never set": (read_register(),),
}


@pytest.mark.parametrize("records", UNORDERED.values(), ids=UNORDERED.keys())
def test_an_unordered_read_is_a_race_where_the_compiler_orders_nothing(
    simulator: SimulatorBackend, tmp_path: Path, records: tuple[bytes, ...]
) -> None:
    found = race(simulator, tmp_path, "off", *records)
    assert found is not None
    sides = [(found[side]["pipe"], found[side]["writes"]) for side in ("first", "second")]
    assert sides == [("V", True), ("S", False)]
    assert race(simulator, tmp_path, "on", *records) is None


@pytest.mark.parametrize("records", ORDERED.values(), ids=ORDERED.keys())
def test_an_ordered_read_is_none(
    simulator: SimulatorBackend, tmp_path: Path, records: tuple[bytes, ...]
) -> None:
    assert race(simulator, tmp_path, "off", *records) is None
