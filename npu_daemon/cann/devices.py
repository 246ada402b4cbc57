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
from pathlib import Path

from ascend_gym.core.errors import InfrastructureError
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.cann.npu_smi import DeviceState, parse_info
from npu_daemon.cann.toolkit import Toolkit
from npu_daemon.sandbox import ResourceLimits, run_limited

_QUERY_LIMITS = ResourceLimits(
    wall_s=30.0, cpu_s=30.0, memory_bytes=1 << 46, file_bytes=1 << 20, processes=256
)


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
