"""DataCopy with SliceInfo, both ways, against slices of numpy arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from vector_machine import Machine, MachineFault, build_machine

Slice = tuple[int, int, int, int, int]  # start, end, gap, blocks of a burst, extent
ELEMENTS = 4096


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest) -> Machine:
    return build_machine(
        "slices", ["copy", "atomic", "cube_copy"], request.config.cache.mkdir("vector_machine")
    )


@pytest.fixture
def machine(built: Machine) -> Iterator[Machine]:
    built.reset()
    built.call("make")
    yield built
    built.call("drop")


def flat(*slices: Slice) -> list[int]:
    return [number for each in slices for number in each]


def test_the_documented_example_picks_two_bursts_of_two_rows(machine: Machine) -> None:
    source: list[Slice] = [(16, 70, 7, 3, 87), (0, 2, 1, 1, 3)]
    target: list[Slice] = [(0, 47, 0, 3, 48), (0, 1, 0, 1, 2)]
    machine.call("in", 0, 2, *flat(*target), *flat(*source))
    matrix = np.arange(3 * 87).reshape(3, 87)
    expected = np.hstack([matrix[::2, 16:40], matrix[::2, 47:71]])
    np.testing.assert_array_equal(machine.view(0, "float32", 96).reshape(2, 48), expected)
    assert [line.name for line in machine.trace()] == ["CopyGmToUb"] * 2


def test_three_dimensions_keep_their_own_starts_and_gaps(machine: Machine) -> None:
    source: list[Slice] = [(8, 15, 0, 1, 32), (1, 3, 1, 1, 5), (2, 4, 0, 1, 6)]
    target: list[Slice] = [(8, 15, 0, 1, 16), (0, 1, 0, 1, 2), (0, 2, 0, 1, 3)]
    machine.call("in", 0, 3, *flat(*target), *flat(*source))
    cube = np.arange(6 * 5 * 32).reshape(6, 5, 32)
    result = machine.view(0, "float32", 96).reshape(3, 2, 16)
    np.testing.assert_array_equal(result[..., 8:], cube[2:5, 1:4:2, 8:16])
    assert not result[..., :8].any()


def test_copies_out_leave_the_gaps_alone(machine: Machine) -> None:
    machine.put(0, -np.arange(1, 33, dtype=np.float32))
    machine.call("out", 0, 1, *flat((3, 53, 6, 1, 64)), *flat((0, 31, 0, 1, 32)))
    machine.call("show", 4096, 64)
    expected = np.arange(64, dtype=np.float32)
    for burst in range(4):
        expected[3 + 14 * burst : 11 + 14 * burst] = -np.arange(1 + 8 * burst, 9 + 8 * burst)
    np.testing.assert_array_equal(machine.view(4096, "float32", 64), expected)


@pytest.mark.parametrize("slices", [[(0, 7, 0, 1, 0)], [(8, 7, 0, 1, 32)]])
def test_slices_without_an_extent_or_an_order_are_faults(machine: Machine, slices: list[Slice]) -> None:
    with pytest.raises(MachineFault, match="a slice needs the extent"):
        machine.call("in", 0, 1, *flat(*slices), *flat(*slices))


def test_slices_outside_of_the_tensor_are_faults(machine: Machine) -> None:
    outside = (0, 7, 0, 1, 32), (200, 200, 0, 1, 201)
    with pytest.raises(MachineFault, match="DataCopy"):
        machine.call("in", 0, 2, *flat((0, 7, 0, 1, 8), (0, 0, 0, 1, 1)), *flat(*outside))
