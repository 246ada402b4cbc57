"""Chips as data: what they share is told once, and each differs as its sources say."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascend_gym.core.chips import CHIPS
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.toml_file import read_toml
from npu_daemon.simulator import chips
from npu_daemon.simulator.chips import chip_names, load_chip
from npu_daemon.simulator.task_type import CoreKind

NAMES = ["910B1", "910B2", "910B3", "910B4", "910_93"]
FOLDER = Path(chips.__file__).with_name("chips")


def test_every_chip_is_listed() -> None:
    assert chip_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_chip_has_every_figure_and_every_figure_a_source(name: str) -> None:
    chip = load_chip(name)
    assert set(chip.timing) == set(load_chip("910B1").timing)
    assert all(len(figure.source) > 5 for figure in (*chip.timing.values(), *chip.geometry.values()))
    geometry = chip.tiling_geometry()
    assert geometry.aiv_cores == 2 * geometry.aic_cores


@pytest.mark.parametrize("name", NAMES)
def test_a_chip_gives_only_what_its_base_does_not(name: str) -> None:
    shared = read_toml(FOLDER / "base" / "dav_2201.toml")
    own = read_toml(FOLDER / f"{name}.toml")
    assert not {key for section in shared for key in own.get(section, {}) if key in shared[section]}


@pytest.mark.parametrize(
    ("name", "vector_cores", "clock_mhz"),
    [
        ("910B1", 48, 1850),
        ("910B2", 48, 1800),
        ("910B3", 40, 1800),
        ("910B4", 40, 1500),
        ("910_93", 48, 1850),
    ],
)
def test_cores_and_clock(name: str, vector_cores: int, clock_mhz: int) -> None:
    chip = load_chip(name)
    assert chip.tiling_geometry().aiv_cores == vector_cores
    assert chip.clock_hz == clock_mhz * 1e6


@pytest.mark.parametrize(
    ("kinds", "core_num"), [([CoreKind.VECTOR], 40), ([CoreKind.CUBE], 20), (list(CoreKind), 20)]
)
def test_the_cores_counted_are_those_that_the_kernel_is_built_for(
    kinds: list[CoreKind], core_num: int
) -> None:
    assert load_chip("910B3").tiling_geometry(kinds).core_num == core_num


def test_chips_are_told_apart() -> None:
    assert len({load_chip(name).digest for name in NAMES}) == len(NAMES)


def test_an_unknown_chip_is_refused_with_those_that_exist() -> None:
    with pytest.raises(MisuseError, match="no chip is named '910B9'; there are: 910B1, 910B2"):
        load_chip("910B9")


def test_requests_know_every_chip() -> None:
    assert list(CHIPS) == chip_names()
