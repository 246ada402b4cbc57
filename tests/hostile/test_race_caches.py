"""What the check of races makes of data caches and of atomic copies, on traces made by hand."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from traces import GM, GM_BASE, KEEPS_VALUE, PAST_CACHE, copy_out, header, record, segment

from npu_daemon.backends.simulator import SimulatorBackend

LINE_BYTES = 64
ADDING, TAKING_MAXIMA = 4 + 8 * 1, 4 + 8 * 2  # flags of a copy
MEET = record("SyncAll")
SETTLE = record("PipeBarrier", pipes=(7, 7))


def load(offset: int, flag: int = 0) -> bytes:
    """Four bytes, by the scalar unit."""
    return record("ScalarAccess", [(GM, GM_BASE + offset, 4, 0)], flag=flag)


def store(offset: int, flag: int = 0) -> bytes:
    """Likewise."""
    return record("ScalarAccess", [(GM, GM_BASE + offset, 4, 0)], flag=flag, repeats=1)


def clean(offset: int) -> bytes:
    """Write a line back, from an offset on."""
    return record("CleanCache", [(GM, GM_BASE + offset, 1, 0)])


def copy(offset: int, flag: int = 0) -> bytes:
    """Half a line, from the unified buffer."""
    return copy_out(GM_BASE + offset, 0, 1, 32, flag=flag)


# Each core's records, and why they race; None: they do not.
CASES: dict[str, tuple[str | None, list[list[bytes]]]] = {
    "loaded before and after": ("stale", [[MEET, copy(0), MEET], [load(0), MEET, MEET, load(0)]]),
    "cleaned in between": (None, [[MEET, copy(0), MEET], [load(0), MEET, MEET, clean(0), load(0)]]),
    "loaded once": (None, [[copy(0), MEET], [MEET, load(0)]]),
    "another line": (None, [[MEET, copy(LINE_BYTES), MEET], [load(0), MEET, MEET, load(LINE_BYTES)]]),
    "loaded while it is written": ("stale", [[SETTLE, load(0), MEET, load(32)], [copy(32), MEET]]),
    "loaded past the cache": (None, [[MEET, copy(0), MEET], [load(0), MEET, MEET, load(0, PAST_CACHE)]]),
    "own copy": ("stale", [[load(0), copy(0), SETTLE, load(0)]]),
    "not written back": ("unwritten", [[store(0), MEET], [MEET, load(0)]]),
    "written back": (None, [[store(0), clean(0), MEET], [MEET, load(0)]]),
    "written back from its middle on": ("unwritten", [[store(0), clean(32), MEET], [MEET, load(0)]]),
    "two stores": ("line shared", [[store(0)], [store(4)]]),
    "two stores, written back": ("line shared", [[store(0), clean(0)], [store(4), clean(0)]]),
    "two stores in turn": (None, [[store(0), clean(0), MEET], [MEET, store(4), clean(0)]]),
    "two stores past the cache": (None, [[store(0, PAST_CACHE)], [store(4, PAST_CACHE)]]),
    "two stores of one value": (None, [[store(0), clean(0)], [store(0, KEEPS_VALUE), clean(0)]]),
    "store, own value again, copy": (
        None,
        [[store(0), clean(0), MEET], [MEET, copy(0), store(0, KEEPS_VALUE)]],
    ),
    "store, old value beside": ("line shared", [[store(4)], [store(0, KEEPS_VALUE)]]),
    "old value, store beside": ("line shared", [[store(0, KEEPS_VALUE)], [store(4)]]),
    "old value, then another": ("line shared", [[store(0, KEEPS_VALUE)], [store(0)]]),
    "old value, copy beside": ("line shared", [[store(0, KEEPS_VALUE)], [copy(32)]]),
    "stores to two lines": (None, [[store(0)], [store(LINE_BYTES)]]),
    "store, copy": ("line shared", [[store(0)], [copy(32)]]),
    "copy, store": ("line shared", [[copy(32)], [store(0)]]),
    "copy, later store": (None, [[copy(32), MEET], [MEET, store(0)]]),
    "store into an old line": ("line shared", [[MEET, copy(32), MEET], [load(0), MEET, MEET, store(0)]]),
    "store, own copy": ("line shared", [[store(0), copy(32)]]),
    "store, clean, own copy": (None, [[store(0), clean(0), copy(32)]]),
    "sums": (None, [[copy(0, ADDING)], [copy(0, ADDING)]]),
    "sum and maximum": ("unordered", [[copy(0, ADDING)], [copy(0, TAKING_MAXIMA)]]),
    "own sum and maximum": ("unordered", [[copy(0, ADDING), copy(0, TAKING_MAXIMA)]]),
}


@pytest.mark.parametrize(("reason", "cores"), CASES.values(), ids=CASES.keys())
def test_what_data_caches_leave_behind(
    simulator: SimulatorBackend, tmp_path: Path, reason: str | None, cores: list[list[bytes]]
) -> None:
    trace, tensors = tmp_path / "trace", tmp_path / "tensors"
    blocks = [segment(core, b"".join((*records, record("BlockEnd")))) for core, records in enumerate(cores)]
    trace.write_bytes(header(len(cores)) + b"".join(blocks))
    tensors.write_text("")
    command = [str(simulator.toolchain.races_program), str(trace), str(tensors), "on"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    race = json.loads(answer.stdout)["race"]
    assert (race and race["reason"]) == reason
