"""The race check against a plain one, which compares each access with all accesses before it."""

from __future__ import annotations

import json
import re
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from traces import VERSION

import npu_daemon.simulator
from npu_daemon.backends.simulator import SimulatorBackend

_DEFINITIONS = Path(npu_daemon.simulator.__file__).parent / "include" / "asim" / "trace" / "instructions.def"
_OPS = re.findall(
    r"^(?:INSTRUCTION|ELEMENTWISE)\((\w+),", _DEFINITIONS.read_text(encoding="ascii"), re.MULTILINE
)
_PIPES = {"V": 1, "MTE2": 4, "MTE3": 5}
_INSTRUCTIONS = {"V": "Adds", "MTE2": "CopyGmToUb", "MTE3": "CopyUbToGm"}
_BLOCK_BYTES = 32
_IN, _OUT = 1 << 30, 1 << 31

Range = tuple[int, int]  # first data block of the unified buffer, and one past the last


@dataclass(frozen=True)
class Instruction:
    """Reads or writes a stretch of the unified buffer; a vector instruction does both."""

    pipe: str
    read: Range | None
    written: Range | None


@dataclass(frozen=True)
class Flag:
    source: str
    target: str


@dataclass(frozen=True)
class Barrier:
    pipe: str


Step = Instruction | Flag | Barrier


@st.composite
def instructions(draw: st.DrawFn) -> Instruction:
    pipe = draw(st.sampled_from(sorted(_PIPES)))
    stretch = st.tuples(st.integers(0, 7), st.integers(1, 3)).map(lambda pair: (pair[0], pair[0] + pair[1]))
    read = draw(stretch) if pipe != "MTE2" else None
    return Instruction(pipe, read, draw(stretch) if pipe != "MTE3" else None)


_PAIRS = [Flag(a, b) for a in sorted(_PIPES) for b in sorted(_PIPES) if a != b]
_STEPS = st.lists(
    st.one_of(
        instructions(),
        st.sampled_from(_PAIRS),
        st.sampled_from([*map(Barrier, sorted(_PIPES)), Barrier("ALL")]),
    ),
    max_size=14,
)


@dataclass
class PlainCheck:
    """Knows for each pipe the instructions that are over when its next one starts."""

    auto_sync: bool
    known: dict[str, set[int]] = field(default_factory=lambda: {pipe: set() for pipe in _PIPES})
    issued: list[Instruction] = field(default_factory=list)

    def races(self, steps: list[Step]) -> bool:
        return any(self._take(step) for step in steps)

    def _take(self, step: Step) -> bool:
        if isinstance(step, Instruction):
            self.issued.append(step)
            return any(self._race(index, step) for index in range(len(self.issued) - 1))
        if isinstance(step, Flag):
            self.known[step.target] |= self._when_done(step.source)
        elif step.pipe == "ALL":
            self.known = {pipe: set(range(len(self.issued))) for pipe in _PIPES}
        else:
            self.known[step.pipe] |= self._when_done(step.pipe)
        return False

    def _when_done(self, pipe: str) -> set[int]:
        own = {index for index, instruction in enumerate(self.issued) if instruction.pipe == pipe}
        return self.known[pipe] | own

    def _race(self, index: int, now: Instruction) -> bool:
        earlier = self.issued[index]
        if index in self.known[now.pipe]:
            return False
        after_write = _meet(earlier.written, now.read) or _meet(earlier.written, now.written)
        if earlier.pipe == now.pipe:
            return after_write and not (self.auto_sync and now.pipe == "V")
        return after_write or _meet(earlier.read, now.written)


def _meet(first: Range | None, second: Range | None) -> bool:
    return first is not None and second is not None and first[0] < second[1] and second[0] < first[1]


def _operand(space: int, address: int, extent: int) -> bytes:
    return struct.pack("<QII", address | space << 56, extent, 1 | 8 << 16)


def _ub(stretch: Range | None) -> bytes:
    first, last = stretch or (0, 0)
    return _operand(0, first * _BLOCK_BYTES, (last - first) * _BLOCK_BYTES)


def _record(op: str, source: str = "", target: str = "", operands: tuple[bytes, ...] = ()) -> bytes:
    pipes = [_PIPES.get(pipe, 7 if pipe == "ALL" else 0) for pipe in (source, target)]
    head = struct.pack("<HBBBBHII", _OPS.index(op), 4, len(operands), *pipes, 0, 1, 0)
    return b"\0" + head + b"".join(operands) + b"\0"


def _encoded(steps: list[Step]) -> bytes:
    """Return the records of one block; each copy touches global memory of its own."""
    records = []
    for number, step in enumerate(steps):
        if isinstance(step, Flag):
            records += [_record(op, step.source, step.target) for op in ("SetFlag", "WaitFlag")]
        elif isinstance(step, Barrier):
            records.append(_record("PipeBarrier", step.pipe, step.pipe))
        else:
            written, read = _ub(step.written), _ub(step.read)
            if step.pipe == "MTE2":
                read = _operand(1, _IN + number * 4096, 32)
            if step.pipe == "MTE3":
                written = _operand(1, _OUT + number * 4096, 32)
            records.append(_record(_INSTRUCTIONS[step.pipe], operands=(written, read)))
    return b"".join([*records, _record("BlockEnd")])


def _trace(blocks: list[bytes]) -> bytes:
    header = b"ASIMTRC\n" + struct.pack("<IIHHI", VERSION, len(blocks), 0, 1, 0)
    return header + b"".join(
        struct.pack("<II", index, len(records)) + records for index, records in enumerate(blocks)
    )


def _found(
    simulator: SimulatorBackend, folder: Path, trace: bytes, auto_sync: str
) -> dict[str, object] | None:
    (folder / "trace").write_bytes(trace)
    (folder / "tensors").write_text("")
    program = str(simulator.toolchain.races_program)
    command = [program, str(folder / "trace"), str(folder / "tensors"), auto_sync]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    race: dict[str, object] | None = json.loads(answer.stdout)["race"]
    return race


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("races")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_STEPS, auto_sync=st.booleans())
def test_a_core_races_when_the_plain_check_says_so(
    simulator: SimulatorBackend, folder: Path, steps: list[Step], auto_sync: bool
) -> None:
    race = _found(simulator, folder, _trace([_encoded(steps)]), "on" if auto_sync else "off")
    assert (race is not None) == PlainCheck(auto_sync).races(steps)


_TOUCHES = st.lists(
    st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 9), st.integers(1, 4)), max_size=8
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(touches=_TOUCHES)
def test_blocks_race_when_two_touch_the_same_bytes_and_one_writes(
    simulator: SimulatorBackend, folder: Path, touches: list[tuple[int, bool, int, int]]
) -> None:
    """Each touch is of a block, a write or a read, from a data block of global memory on, of some length."""
    blocks = [b"", b"", b""]
    for block, writes, first, length in touches:
        op = "CopyUbToGm" if writes else "CopyGmToUb"
        gm = _operand(1, _OUT + first * _BLOCK_BYTES, length * _BLOCK_BYTES)
        operands = (gm, _ub((0, 1))) if writes else (_ub((0, 1)), gm)
        blocks[block] += _record(op, operands=operands) + _record("PipeBarrier", "ALL", "ALL")
    expected = any(
        a[0] != b[0] and (a[1] or b[1]) and _meet((a[2], a[2] + a[3]), (b[2], b[2] + b[3]))
        for a in touches
        for b in touches
    )
    race = _found(simulator, folder, _trace([records + _record("BlockEnd") for records in blocks]), "on")
    assert (race is not None) == expected
