"""Prices behave as a chip does: more of anything never costs time, on kernels drawn at random.

Kernels are traces made by hand: a pipeline of copies in, instructions and copies out, of any number of
cores, tiles, buffers and inputs, with tiles that follow each other or wait for the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from traces import (
    BYPASSES_L2,
    GM_BASE,
    MTE2,
    MTE3,
    Pricer,
    V,
    copy_in,
    copy_out,
    hand_over,
    idle_scalar,
    set_flag,
    vector,
    wait_flag,
)

from ascend_gym.core.records import Convention
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.simulator.chips import Figure, load_chip

TOLERANCE = 1.005
BETTER = {
    "hbm_gb_per_s": 1.25,
    "l2_gb_per_s": 1.25,
    "clock_mhz": 1.1,
    "l2_bytes": 2.0,
    "hbm_core_bytes_per_cycle": 1.25,
    "l2_core_bytes_per_cycle": 1.25,
    "write_core_bytes_per_cycle": 1.25,
    "l2_usable_share": 1.3,
    "write_buffer_bytes": 2.0,
    "queue_depth": 2.0,
}


@dataclass(frozen=True)
class Streaming:
    """A kernel that takes tiles of ``inputs`` tensors through the vector unit, and writes one."""

    cores: int = 48
    tile_bytes: int = 8192
    tiles: int = 8  # of each core
    buffers: int = 2
    inputs: int = 2
    instructions: int = 1  # on each tile
    flag: int = 0
    waits: bool = False  # each tile for the one before to be written
    offset: int = 0  # of the tensors in global memory

    def blocks(self) -> list[bytes]:
        """Return the records of its blocks."""
        tensor = self.cores * self.tiles * self.tile_bytes + 4096
        return [self._block(core, tensor) for core in range(self.cores)]

    def _block(self, core: int, tensor: int) -> bytes:
        block = idle_scalar(200)
        for tile in range(self.tiles):
            flag = tile % self.buffers
            place = (self.inputs + 1) * self.tile_bytes * flag
            result = place + self.inputs * self.tile_bytes
            at = GM_BASE + self.offset + (core * self.tiles + tile) * self.tile_bytes
            if tile >= self.buffers:
                block += wait_flag(V, MTE2, flag)
            if self.waits and tile:
                block += wait_flag(MTE3, MTE2, 7)
            for index in range(self.inputs):
                to = place + index * self.tile_bytes
                block += copy_in(to, at + index * tensor, 1, self.tile_bytes, flag=self.flag)
            block += hand_over(MTE2, V, flag)
            if tile >= self.buffers:
                block += wait_flag(MTE3, V, flag)
            block += vector("Exp", (result, place), max(1, self.tile_bytes // 256)) * self.instructions
            block += set_flag(V, MTE2, flag) + hand_over(V, MTE3, flag)
            block += copy_out(at + self.inputs * tensor, result, 1, self.tile_bytes) + set_flag(MTE3, V, flag)
            if self.waits:
                block += set_flag(MTE3, MTE2, 7)
        return block


KERNELS = st.builds(
    Streaming,
    cores=st.sampled_from([1, 4, 8, 16, 24, 32, 40, 48]),
    tile_bytes=st.sampled_from([512, 1024, 2048, 4096, 8192, 16384]),
    tiles=st.sampled_from([1, 2, 3, 5, 8]),
    buffers=st.sampled_from([1, 2]),
    inputs=st.sampled_from([1, 2, 3]),
    instructions=st.sampled_from([1, 3]),
    flag=st.sampled_from([0, 0, BYPASSES_L2]),
    waits=st.booleans(),
    offset=st.sampled_from([0, 0, 32, 200]),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("physics")


def task_us(
    simulator: SimulatorBackend,
    folder: Path,
    blocks: list[bytes],
    convention: Convention,
    chip: str = "910B2",
    **changed: float,
) -> float:
    """Return the price of a launch with some figures of the chip multiplied."""
    pricer = Pricer(simulator.toolchain.price_program, folder, chip)
    found = load_chip(chip).under(convention)
    sections = {"timing": dict(found.timing), "geometry": dict(found.geometry)}
    for name, factor in changed.items():
        section = sections["geometry" if name in sections["geometry"] else "timing"]
        section[name] = Figure(value=float(section[name].value) * factor, source="multiplied")
    pricer._chip = found.model_copy(update=sections)
    return pricer.task_us(blocks)


physics = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("figure", BETTER)
@physics
@given(kernel=KERNELS, chip=st.sampled_from(["910B2", "910B4"]), convention=st.sampled_from(list(Convention)))
@example(kernel=Streaming(tile_bytes=2048), chip="910B1", convention=Convention.L2_COLD)
@example(kernel=Streaming(tile_bytes=32768, tiles=4), chip="910B1", convention=Convention.L2_COLD)
def test_a_better_chip_makes_nothing_slower(
    simulator: SimulatorBackend,
    folder: Path,
    figure: str,
    kernel: Streaming,
    chip: str,
    convention: Convention,
) -> None:
    blocks = kernel.blocks()
    before = task_us(simulator, folder, blocks, convention, chip)
    better = task_us(simulator, folder, blocks, convention, chip, **{figure: BETTER[figure]})
    assert better <= TOLERANCE * before


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("convention", [Convention.WARM, Convention.L2_COLD])
def test_sharing_much_work_among_more_cores_is_no_slower(
    simulator: SimulatorBackend, folder: Path, convention: Convention, waits: bool
) -> None:
    tiles = 192
    prices = [
        task_us(
            simulator, folder, Streaming(cores=cores, tiles=tiles // cores, waits=waits).blocks(), convention
        )
        for cores in (1, 2, 4, 8, 16, 24, 48)
    ]
    assert all(more <= TOLERANCE * fewer for fewer, more in pairwise(prices[:-1]))
    empty = [task_us(simulator, folder, [b""] * cores, convention) for cores in (24, 48)]
    assert prices[-1] - empty[1] <= TOLERANCE * (prices[-2] - empty[0])


@pytest.mark.parametrize("convention", [Convention.WARM, Convention.L2_COLD])
def test_larger_tiles_are_no_slower_while_there_are_many(
    simulator: SimulatorBackend, folder: Path, convention: Convention
) -> None:
    prices = [
        task_us(simulator, folder, Streaming(tile_bytes=256 << step, tiles=512 >> step).blocks(), convention)
        for step in range(6)
    ]
    assert all(larger <= TOLERANCE * smaller for smaller, larger in pairwise(prices))
