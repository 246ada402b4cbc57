"""Parses the output of ``npu-smi info``: devices, their health and the processes that use them.

The layout is that of the npu-smi manual: two rows per chip below ``NPU Name | Health | Power(W) ...`` and
``Chip ... | Bus-Id | AICore(%) ...``, and a second table of processes. Columns within a cell differ between
driver versions; only those that all versions have are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ascend_gym.core.errors import InfrastructureError

HEALTHY = "OK"
_HEALTH = frozenset({"OK", "Warning", "Alarm", "Critical", "UNKNOWN", "NA"})
_CELLS = 3
_PROCESS_CELLS = 4


class NpuSmiFormatError(InfrastructureError):
    """``npu-smi info`` did not print the table of its manual."""


@dataclass(frozen=True)
class DeviceState:
    """One chip as ``npu-smi info`` shows it.

    Attributes:
        device: position in the table, which is the device number of the runtime.
        npu: number of the card.
        chip: number of the chip on the card.
        name: chip name, for example ``910B3``.
        health: ``OK``, ``Warning``, ``Alarm``, ``Critical`` or ``UNKNOWN``.
        pids: processes that use the chip.
    """

    device: int
    npu: int
    chip: int
    name: str
    health: str
    pids: tuple[int, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether the driver reports no problem."""
        return self.health == HEALTHY


def parse_info(text: str) -> tuple[DeviceState, ...]:
    """Return the devices in the output of ``npu-smi info``.

    Raises:
        NpuSmiFormatError: the table is missing, or a row cannot be parsed.
    """
    rows = [_cells(line) for line in text.splitlines() if line.lstrip().startswith("|")]
    starts = [at for at, row in enumerate(rows) if row[0].split()[:2] == ["NPU", "Name"]]
    if not starts:
        shown = " ".join(text.split())[:200]
        raise NpuSmiFormatError(f"expected the table of npu-smi info, got {shown!r}")
    ends = [at for at, row in enumerate(rows) if any("Process id" in cell for cell in row)]
    end = ends[0] if ends else len(rows)
    devices = _devices(rows[starts[0] + 2 : end])
    return _with_processes(devices, rows[end + 1 :])


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _devices(rows: Sequence[Sequence[str]]) -> list[DeviceState]:
    if len(rows) % 2:
        raise NpuSmiFormatError(f"expected two rows for each chip, got {len(rows)} rows")
    return [
        _device(number, first, second)
        for number, (first, second) in enumerate(zip(rows[::2], rows[1::2], strict=True))
    ]


def _device(number: int, first: Sequence[str], second: Sequence[str]) -> DeviceState:
    card, chip = first[0].split(maxsplit=1), second[0].split()
    readable = len(first) == len(second) == _CELLS and len(card) == 2 and len(chip) >= 1
    if not readable or not _is_number(card[0]) or not _is_number(chip[0]) or first[1] not in _HEALTH:
        raise NpuSmiFormatError(f"cannot read device {number}: {' | '.join(first)} / {' | '.join(second)}")
    return DeviceState(
        device=number,
        npu=int(card[0]),
        chip=int(chip[0]),
        name=card[1].strip(),
        health=first[1],
    )


def _with_processes(devices: Sequence[DeviceState], rows: Sequence[Sequence[str]]) -> tuple[DeviceState, ...]:
    pids: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        place = row[0].split()
        if len(row) >= _PROCESS_CELLS and len(place) == 2 and all(map(_is_number, (*place, row[1]))):
            pids.setdefault((int(place[0]), int(place[1])), []).append(int(row[1]))
    return tuple(replace(each, pids=tuple(pids.get((each.npu, each.chip), ()))) for each in devices)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
