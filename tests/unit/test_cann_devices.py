"""Who holds which device, and which are not used any more."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from cann_samples import NPU_SMI_INFO

from ascend_gym.core.errors import InfrastructureError
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.cann.devices import DevicePool, parse_info

STATES = parse_info(NPU_SMI_INFO)


def _pool(folder: Path, *devices: int) -> DevicePool:
    return DevicePool(folder, CannSettings(devices=devices), "910B2")


def test_two_holders_have_different_devices(tmp_path: Path) -> None:
    with _pool(tmp_path, 3, 5).lease() as first, _pool(tmp_path, 3, 5).lease() as second:
        assert {first, second} == {3, 5}


def test_who_finds_none_free_waits_for_one(tmp_path: Path) -> None:
    held: list[int] = []

    def hold() -> None:
        with _pool(tmp_path, 4).lease() as device:
            held.append(device)

    waiting = threading.Thread(target=hold)
    with _pool(tmp_path, 4).lease() as device:
        waiting.start()
        waiting.join(timeout=0.2)
        assert (device, held) == (4, [])
    waiting.join(timeout=180.0)
    assert held == [4]


def test_an_excluded_device_is_not_given_out(tmp_path: Path) -> None:
    pool = _pool(tmp_path, 0, 1)
    pool.exclude(0, "it smokes")
    with pool.lease() as device:
        assert device == 1
    pool.exclude(1, "it burns")
    with pytest.raises(InfrastructureError, match=r"device 0: it smokes; device 1: it burns"), pool.lease():
        pytest.fail("there is none")


def test_a_device_that_is_excluded_while_somebody_waits_is_not_given_out(tmp_path: Path) -> None:
    said: list[str] = []

    def hold() -> None:
        with pytest.raises(InfrastructureError) as refused, _pool(tmp_path, 0).lease():
            said.append("got it")
        said.append(str(refused.value))

    waiting = threading.Thread(target=hold)
    with _pool(tmp_path, 0).lease():
        waiting.start()
        waiting.join(timeout=0.2)
        _pool(tmp_path, 0).exclude(0, "it fell")
    waiting.join(timeout=180.0)
    assert len(said) == 1
    assert "it fell" in said[0]


def test_complaints_name_what_is_wrong(tmp_path: Path) -> None:
    pool = _pool(tmp_path, 0, 1)
    assert pool.complaint(0, STATES) is None
    assert pool.complaint(1, STATES) == "its health is Alarm"
    assert "lists 2 devices" in str(pool.complaint(2, STATES))
    pool.exclude(0, "it smokes")
    assert str(pool.complaint(0, STATES)).startswith("excluded: it smokes (remove ")
