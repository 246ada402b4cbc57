"""What the check of races makes of instructions whose blocks lie apart, on traces made by hand."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from traces import UB, header, record, segment

from npu_daemon.backends.simulator import SimulatorBackend

SOURCE = 64 * 1024


def raced(simulator: SimulatorBackend, folder: Path, *records: bytes) -> bool:
    """Say whether one block of these records, without automatic synchronisation, has a race."""
    trace, tensors = folder / "trace", folder / "tensors"
    trace.write_bytes(header() + segment(0, b"".join((*records, record("BlockEnd")))))
    tensors.write_text("")
    command = [str(simulator.toolchain.races_program), str(trace), str(tensors), "off"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    return json.loads(answer.stdout)["race"] is not None


def transpose(target: int, extent: int) -> bytes:
    """Sixteen blocks, 512 bytes, spread over ``extent`` bytes."""
    return record("Transpose", [(UB, target, extent, 1), (UB, SOURCE, 512, 1)], repeats=2, element_bytes=4)


def test_transpositions_between_the_blocks_of_each_other_are_no_race(
    simulator: SimulatorBackend, tmp_path: Path
) -> None:
    assert not raced(simulator, tmp_path, transpose(0, 1984), transpose(64, 1984))


def test_transpositions_onto_the_same_bytes_are_a_race(simulator: SimulatorBackend, tmp_path: Path) -> None:
    assert raced(simulator, tmp_path, transpose(0, 512), transpose(256, 512))


@pytest.mark.parametrize("repeat_blocks", [0, 8])
def test_repeats_of_one_instruction_onto_each_other_are_no_race(
    simulator: SimulatorBackend, tmp_path: Path, repeat_blocks: int
) -> None:
    """Eight blocks a repeat, every other one: the next repeat writes some of them again."""
    block_bytes, repeats = 32, 4
    extent_bytes = ((repeats - 1) * repeat_blocks + 15) * block_bytes
    written, read = (UB, 0, extent_bytes, repeat_blocks << 16 | 2), (UB, SOURCE, 256 * repeats, 8 << 16 | 1)
    instruction = record("Adds", [written, read], repeats=repeats, element_bytes=4)
    assert not raced(simulator, tmp_path, instruction)
    assert raced(simulator, tmp_path, instruction, instruction)
