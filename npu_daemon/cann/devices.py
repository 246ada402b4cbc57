"""Devices of a host: leases, health, and exclusions.

A device belongs to one process at a time, by a file lock that the operating system releases with the
process. A failing device is excluded by a file with the reason, which only a person removes.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ascend_gym.core.errors import InfrastructureError
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.cann.toolkit import Toolkit
from npu_daemon.sandbox import ResourceLimits, run_limited

HEALTHY = "OK"
_HEALTH = frozenset({"OK", "Warning", "Alarm", "Critical", "UNKNOWN", "NA"})
_CELLS = 3
_PROCESS_CELLS = 4

_QUERY_LIMITS = ResourceLimits(
    wall_s=30.0, cpu_s=30.0, memory_bytes=1 << 46, file_bytes=1 << 20, processes=256
)


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
    """Return the devices in the output of ``npu-smi info``: their health and the processes that use them.

    The layout is that of the npu-smi manual: two rows per chip below ``NPU Name | Health | Power(W) ...`` and
    ``Chip ... | Bus-Id | AICore(%) ...``, and a second table of processes. Columns within a cell differ
    between driver versions; only those that all versions have are read.

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


def query_devices(toolkit: Toolkit) -> tuple[DeviceState, ...]:
    """Return the devices of this host according to ``npu-smi info``.

    Raises:
        InfrastructureError: the command fails or prints something unexpected.
    """
    with tempfile.TemporaryDirectory(prefix="ascend-gym-smi-") as folder:
        outcome = run_limited(
            [toolkit.program("npu-smi"), "info"],
            cwd=Path(folder),
            limits=_QUERY_LIMITS,
            reach=None,
            env=toolkit.environment,
        )
    text = (outcome.stdout + outcome.stderr).decode("utf-8", "replace")
    if outcome.returncode != 0:
        raise InfrastructureError(f"npu-smi info failed with exit status {outcome.returncode}: {text[:300]}")
    return parse_info(text)


class DevicePool:
    """The devices that this daemon may use.

    Args:
        folder: folder for locks and exclusions, shared by the daemon's processes.
        settings: settings with the device numbers.
        chip: expected chip, for example ``910B2``.
    """

    def __init__(self, folder: Path, settings: CannSettings, chip: str) -> None:
        self._folder = folder / "devices"
        self._devices = settings.devices
        self._chip = chip

    @contextmanager
    def lease(self) -> Iterator[int]:
        """Wait for a free device that is not excluded and hold it for the block; yield its number.

        Raises:
            InfrastructureError: all devices are excluded.
        """
        usable = [device for device in self._devices if self.exclusion(device) is None]
        if not usable:
            reasons = "; ".join(f"device {each}: {self.exclusion(each)}" for each in self._devices)
            raise InfrastructureError(
                f"no device is left: {reasons}. After repair remove the files *.excluded in {self._folder}"
            )
        self._folder.mkdir(parents=True, exist_ok=True)
        first = os.getpid() % len(usable)
        for device in (*usable[first:], *usable[:first]):
            with self._lock_file(device) as lock:
                if _try_lock(lock):
                    yield device
                    return
        with self._lock_file(usable[first]) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            excluded = self.exclusion(usable[first])
            if excluded is None:
                yield usable[first]
                return
        raise InfrastructureError(f"device {usable[first]} was excluded meanwhile: {excluded}")

    def exclude(self, device: int, reason: str) -> None:
        """Exclude ``device`` from further use."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._exclusion_file(device).write_text(reason, encoding="utf-8")

    def exclusion(self, device: int) -> str | None:
        """Return why a device is excluded, or ``None``."""
        path = self._exclusion_file(device)
        return path.read_text("utf-8") if path.is_file() else None

    def complaint(self, device: int, states: Sequence[DeviceState]) -> str | None:
        """Return why a device cannot be used, or ``None``.

        Args:
            device: number of the device.
            states: states of all devices of this host.
        """
        excluded = self.exclusion(device)
        if excluded is not None:
            return f"excluded: {excluded} (remove {self._exclusion_file(device)} after repair)"
        if device >= len(states):
            return f"npu-smi info lists {len(states)} devices, numbered from 0"
        state = states[device]
        if not state.healthy:
            return f"its health is {state.health}"
        if state.name != self._chip:
            return f"it is a {state.name}, the daemon is set up for {self._chip} (--chip)"
        return None

    def _exclusion_file(self, device: int) -> Path:
        return self._folder / f"{device}.excluded"

    @contextmanager
    def _lock_file(self, device: int) -> Iterator[int]:
        descriptor = os.open(self._folder / f"{device}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
