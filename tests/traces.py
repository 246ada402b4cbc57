"""Traces made by hand, so that the pricing model can be asked about one mechanism at a time."""

from __future__ import annotations

import json
import re
import struct
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ascend_gym.core.records import Convention
from npu_daemon.simulator import chips
from npu_daemon.simulator.chips import Chip, load_chip

MAGIC = b"ASIMTRC\n"
VERSION = 6
HEAD_BYTES = 16  # of a record, before its operands and its scalar work
BLOCK = 9  # class of scalar work: basic blocks of the library
FETCHED = 14  # instructions of the kernel's own code that the block had not executed before
IN_FULL = b"\0"  # before a record that is written as it lies in memory
S, V, M, MTE2, MTE3, FIX = 0, 1, 2, 4, 5, 6
UB, GM, L1, L0A, L0B, L0C = range(6)
REGISTER = 8
BYPASSES_L2, UNIT_FLAG, ATOMIC = 1, 2, 4
PAST_CACHE, KEEPS_VALUE = 2, 4  # flags of a scalar access
ALL_OF_KIND = 0  # mode of a flag between cores
GM_BASE = 1 << 33
ADDRESS_MASK = (1 << 56) - 1
_DEFINITIONS = Path(chips.__file__).parent / "include/asim/trace/instructions.def"
OPCODES = {
    name: code
    for code, name in enumerate(
        re.findall(
            r"^(?:INSTRUCTION|ELEMENTWISE)\((\w+)", _DEFINITIONS.read_text(encoding="utf-8"), re.MULTILINE
        )
    )
}

Operand = tuple[int, int, int, int]  # space, address, extent in bytes, stride


def record(
    name: str,
    operands: Sequence[Operand] = (),
    *,
    pipes: tuple[int, int] = (0, 0),
    flag: int = 0,
    repeats: int = 0,
    burst_bytes: int = 0,
    element_bytes: int = 2,
    fetched: int = 0,
) -> bytes:
    """Return one record; each costs two basic blocks of scalar work, and the fetch of some instructions."""
    head = struct.pack(
        "<HBBBBHII", OPCODES[name], element_bytes, len(operands), *pipes, flag, repeats, burst_bytes
    )
    ranges = b"".join(struct.pack("<QII", at | space << 56, *rest) for space, at, *rest in operands)
    return IN_FULL + head + ranges + changed_counts({}, {BLOCK: 2, FETCHED: fetched})


def changed_counts(before: dict[int, int], now: dict[int, int]) -> bytes:
    """Return how scalar work is written: a bit for each class whose count changed, and those counts."""
    changed = [kind for kind in sorted(before | now) if before.get(kind, 0) != now.get(kind, 0)]
    return number(sum(1 << kind for kind in changed)) + b"".join(number(now.get(kind, 0)) for kind in changed)


def copy_in(ub: int, gm: int, bursts: int, burst_bytes: int, stride: int = 0, flag: int = 0) -> bytes:
    """Return a copy of ``bursts`` bursts, ``stride`` bytes apart in global memory, to the unified buffer."""
    return _copy("CopyGmToUb", (ub, gm), bursts, burst_bytes, stride, flag)


def copy_out(gm: int, ub: int, bursts: int, burst_bytes: int, stride: int = 0, flag: int = 0) -> bytes:
    """Return a copy from the unified buffer to global memory."""
    return _copy("CopyUbToGm", (ub, gm), bursts, burst_bytes, stride, flag)


def _copy(
    name: str, addresses: tuple[int, int], bursts: int, burst_bytes: int, stride: int, flag: int
) -> bytes:
    step = stride or burst_bytes
    local = (UB, addresses[0], bursts * burst_bytes, burst_bytes)
    remote = (GM, addresses[1], (bursts - 1) * step + burst_bytes, step)
    operands = (local, remote) if name == "CopyGmToUb" else (remote, local)
    return record(name, operands, flag=flag, repeats=bursts, burst_bytes=burst_bytes, element_bytes=1)


def copy_rows(l1: int, gm: int, rows: int, row_bytes: int, stride: int) -> bytes:
    """Return a copy of rows, ``stride`` bytes apart in global memory, to L1."""
    operands = ((L1, l1, rows * row_bytes, 0), (GM, gm, (rows - 1) * stride + row_bytes, stride))
    return record("CopyGmToL1", operands, repeats=rows, burst_bytes=row_bytes, element_bytes=1)


def multiply(m: int, n: int, k: int, *, flag: int = 0) -> bytes:
    """Return a multiplication of half matrices from the start of L0A and L0B into the start of L0C."""
    operands = ((L0C, 0, 4 * m * n, 0), (L0A, 0, 2 * m * k, 0), (L0B, 0, 2 * n * k, 0))
    return record("Mmad", operands, flag=flag, repeats=m // 16 * (n // 16), burst_bytes=2 * k)


def copy_result(gm: int, m: int, n: int, stride: int, *, flag: int = 0) -> bytes:
    """Return a copy of ``m`` x ``n`` half results from the start of L0C to rows of global memory."""
    operands = ((GM, gm, (m - 1) * stride + 2 * n, stride), (L0C, 0, 4 * m * n, 0))
    return record("CopyL0cToGm", operands, flag=flag, repeats=m, burst_bytes=2 * n, element_bytes=1)


def vector(
    name: str,
    addresses: Sequence[int],
    repeats: int,
    block_strides: Sequence[int] = (1, 1, 1),
    *,
    element_bytes: int = 2,
) -> bytes:
    """Return a vector instruction; the first address is written, repeats lie eight blocks apart."""
    operands = [
        (UB, at, 256 * repeats, stride | 8 << 16)
        for at, stride in zip(addresses, block_strides, strict=False)
    ]
    return record(name, operands, repeats=repeats, element_bytes=element_bytes)


def hand_over(source: int, target: int, flag: int = 0) -> bytes:
    """Return a flag set by one pipe and awaited by another."""
    return set_flag(source, target, flag) + wait_flag(source, target, flag)


def set_flag(source: int, target: int, flag: int = 0) -> bytes:
    """Return a flag set by ``source`` for ``target``."""
    return record("SetFlag", pipes=(source, target), flag=flag)


def wait_flag(source: int, target: int, flag: int = 0) -> bytes:
    """Return the wait of ``target`` for a flag of ``source``."""
    return record("WaitFlag", pipes=(source, target), flag=flag)


def meet_others(pipe: int, mode: int, flag: int = 0) -> bytes:
    """Return a flag for other cores, set by ``pipe``, and the wait for theirs."""
    return record("CrossCoreSet", pipes=(pipe, pipe), flag=flag, repeats=mode) + record(
        "CrossCoreWait", flag=flag
    )


def idle_scalar(fetched: int = 0) -> bytes:
    """Return a call that takes the scalar unit the time of its issue and fetches, and orders nothing."""
    return record("PipeBarrier", pipes=(S, S), fetched=fetched)


def access_scalar(ub: int, *, write: bool = False) -> bytes:
    """Return an access of the scalar unit to a float of the unified buffer."""
    return record("ScalarAccess", [(UB, ub, 4, 0)], repeats=int(write), element_bytes=4)


def maximum(ub: int, repeats: int) -> bytes:
    """Return a maximum of ``repeats`` repeats that leaves its result in a register, too."""
    operands = [(UB, ub, 8 * repeats, 1), (UB, ub, 256 * repeats, 1 | 8 << 16)]
    return record("WholeReduceMax", operands, flag=1, repeats=repeats, element_bytes=4)


def read_register(index: int = 0) -> bytes:
    """Return a read of a vector register by the scalar unit; that of maxima is the first."""
    return record("ScalarAccess", [(REGISTER, 8 * index, 8, 0)], element_bytes=8)


def compact(records: Sequence[bytes]) -> bytes:
    """Return the codes of ``site.h`` for records that come written in full: what repeats becomes short."""
    sites: list[_Site] = []
    codes, last, run = b"", None, 0
    for raw in records:
        entry = _Site(raw)
        follower = sites[last].next if last is not None else None
        if (
            follower is not None
            and sites[follower].shape == entry.shape
            and not sites[follower].moved_to(entry)
        ):
            last, run = follower, run + 1
            continue
        codes += number(2 * run - 1) if run else b""
        run = 0
        index = next((i for i, site in enumerate(sites) if site.shape == entry.shape), None)
        if index is None:
            index = len(sites)
            sites.append(entry)
            codes += raw
        else:
            codes += number(2 * (index + 1)) + sites[index].changes(entry)
        if last is not None:
            sites[last].next = index
        last = index
    return codes + (number(2 * run - 1) if run else b"")


def number(value: int) -> bytes:
    """Return a number of variable length: seven bits a byte, the lowest first."""
    low = bytes([value & 0x7F | (0x80 if value > 0x7F else 0)])
    return low if value <= 0x7F else low + number(value >> 7)


def _counts(raw: bytes) -> dict[int, int]:
    """Return the scalar work by class of a record that is written in full."""
    numbers, value, shift = [], 0, 0
    for byte in raw:
        value, shift = value | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            numbers.append(value)
            value, shift = 0, 0
    kinds = [kind for kind in range(numbers[0].bit_length()) if numbers[0] >> kind & 1]
    return dict(zip(kinds, numbers[1:], strict=True))


class _Site:
    """A record that was written in full, and how its addresses have moved since."""

    def __init__(self, raw: bytes) -> None:
        count = raw[4]
        begin = 1 + HEAD_BYTES
        fields = [struct.unpack_from("<QII", raw, begin + 16 * index) for index in range(count)]
        self.addresses = [first & ADDRESS_MASK for first, _, _ in fields]
        self.steps = [(0, 0)] * count  # the last one, and the one before
        self.scalar = _counts(raw[begin + 16 * count :])
        self.shape = (raw[:begin], [(first >> 56, *rest) for first, *rest in fields])
        self.next: int | None = None

    def foreseen(self) -> list[int]:
        return [at + step & ADDRESS_MASK for at, (_, step) in zip(self.addresses, self.steps, strict=True)]

    def moved_to(self, entry: _Site) -> bool:
        """Say whether the entry is not as foreseen; if it is, take its place."""
        if self.foreseen() != entry.addresses or self.scalar != entry.scalar:
            return True
        self._move(entry)
        return False

    def changes(self, entry: _Site) -> bytes:
        mask, codes = 0, b""
        for index, (foreseen, at) in enumerate(zip(self.foreseen(), entry.addresses, strict=True)):
            if foreseen != at:
                mask |= 1 << index
                codes += number(2 * (at - foreseen) if at > foreseen else 2 * (foreseen - at) - 1)
        if self.scalar != entry.scalar:
            mask |= 1 << 5
            codes += changed_counts(self.scalar, entry.scalar)
        self._move(entry)
        self.scalar = entry.scalar
        return bytes([mask]) + codes

    def _move(self, entry: _Site) -> None:
        pairs = zip(self.addresses, entry.addresses, self.steps, strict=True)
        self.steps = [(new - old, latest) for old, new, (latest, _) in pairs]
        self.addresses = entry.addresses


def header(blocks: int = 1, *, cubes: int = 0, vectors: int = 1) -> bytes:
    """Return the header of a trace of groups of so many cube and vector cores."""
    return MAGIC + struct.pack("<IIHHI", VERSION, blocks, cubes, vectors, 0)


def segment(block: int, records: bytes) -> bytes:
    """Return a run of records of one block."""
    return struct.pack("<II", block, len(records)) + records


def trace_of(blocks: Iterable[bytes], *, cube: bool = False, mixed: bool = False) -> bytes:
    """Return the trace of a launch, one block after another; each is ended here.

    It is on cores of one kind or, mixed, on cube cores and two vector cores each.
    """
    segments = [segment(index, block + record("BlockEnd")) for index, block in enumerate(blocks)]
    vectors = 2 if mixed else int(not cube)
    return header(len(segments), cubes=int(cube or mixed), vectors=vectors) + b"".join(segments)


class Pricer:
    """Prices traces on a chip.

    Args:
        program: the pricing program.
        folder: scratch.
        chip: name of the chip.
        cube: whether blocks run on cube cores.
        cold: whether it prices first launches.
        mixed: whether blocks run on cube cores and two vector cores each.
    """

    def __init__(
        self,
        program: Path,
        folder: Path,
        chip: str = "910B1",
        *,
        cube: bool = False,
        cold: bool = False,
        mixed: bool = False,
    ) -> None:
        self._program, self._folder, self._cube, self._mixed = program, folder, cube, mixed
        found = load_chip(chip).under(Convention.COLD if cold else Convention.L2_COLD)
        alone = {
            "l2_dirty_bytes": found.cold["l2_dirty_bytes"]
        }  # mechanisms show without others' results in L2
        self._chip: Chip = found.model_copy(update={"timing": {**found.timing, **alone}})

    def text(self, blocks: Iterable[bytes], tensors: str = "") -> str:
        """Return what the pricing program prints, with lines ``in|out ADDRESS BYTES NAME`` of tensors."""
        trace, chip, ranges = (self._folder / name for name in ("trace", "chip", "tensors"))
        trace.write_bytes(trace_of(blocks, cube=self._cube, mixed=self._mixed))
        chip.write_text(self._chip.pricing_text())
        ranges.write_text(tensors)
        command = [str(self._program), str(trace), str(chip), str(ranges)]
        return subprocess.run(command, capture_output=True, text=True, timeout=180, check=True).stdout

    def price(self, blocks: Iterable[bytes], tensors: str = "") -> dict[str, Any]:
        """Return the price of a launch: cycles, microseconds, counters of each core."""
        answer: dict[str, Any] = json.loads(self.text(blocks, tensors))
        return answer

    def task_us(self, blocks: Iterable[bytes]) -> float:
        """Return the duration of a launch in microseconds."""
        return float(self.price(blocks)["task_us"])

    def busy_us(self, blocks: Iterable[bytes], pipe: str) -> float:
        """Return the mean busy time of a pipe, such as ``mte2``, in microseconds."""
        cores = self.price(blocks)["cores"]
        cycles = sum(core[f"{pipe}_cycles"] for core in cores) / len(cores)
        return float(cycles) / self._chip.clock_hz * 1e6
