"""The mask register: who sets it, who uses it, and what calls leave in it."""

from __future__ import annotations

import numpy as np
import pytest
from vector_machine import BLOCK_BYTES, Machine, MachineFault, build_machine

LANES = 64  # of float in a repeat
SRC, DST = 0, 4096


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Machine:
    return build_machine(
        "mask", ["vector_elementwise", "vector_gather"], request.config.cache.mkdir("vector_machine")
    )


@pytest.fixture(autouse=True)
def fresh(machine: Machine) -> None:
    machine.reset()


def added(machine: Machine, call: str, argument: int) -> list[int]:
    """Return the lanes of two repeats that a call with the register adds 1 to."""
    machine.put(DST, np.zeros(2 * LANES, np.float32))
    machine.call(call, DST, SRC, argument)
    return np.flatnonzero(machine.view(DST, "float32", 2 * LANES)).tolist()


def with_register(machine: Machine, repeats: int = 1) -> list[int]:
    return added(machine, "Adds with the register", repeats)


def test_all_lanes_take_part_at_first(machine: Machine) -> None:
    assert with_register(machine) == list(range(LANES))


def test_a_call_with_a_count_leaves_all_lanes_in_normal_mode(machine: Machine) -> None:
    machine.call("SetVectorMask", 0, 0b101)
    assert with_register(machine) == [0, 2]
    assert added(machine, "Adds count", 7) == list(range(7))
    assert with_register(machine, 2) == list(range(2 * LANES))


def test_a_call_with_a_count_ends_counter_mode(machine: Machine) -> None:
    machine.call("SetMaskCount")
    machine.call("SetVectorMask", 0, 70)
    assert with_register(machine) == list(range(70))
    assert added(machine, "Adds count", 7) == list(range(7))
    assert with_register(machine) == list(range(LANES))


def test_a_mask_that_comes_with_a_call_stays(machine: Machine) -> None:
    assert added(machine, "Adds lanes", 5) == list(range(5))
    assert with_register(machine) == list(range(5))
    assert added(machine, "Adds bits", 0b1001) == [0, 3]
    assert with_register(machine) == [0, 3]


def test_in_counter_mode_it_is_a_count_that_stays(machine: Machine) -> None:
    machine.call("SetMaskCount")
    assert added(machine, "Adds lanes", 66) == list(range(66))
    assert with_register(machine) == list(range(66))


def test_a_call_with_a_count_may_take_the_register_instead(machine: Machine) -> None:
    machine.call("SetVectorMask", 0, 0b110)
    assert added(machine, "Adds count with the register", 50) == [1, 2]


@pytest.mark.parametrize("in_register", [False, True])
@pytest.mark.parametrize(
    ("elements", "repeats", "strides"),
    [(8, 18, (1, 1, 1, 8)), (144, 1, (1, 8, 8, 8)), (70, 3, (1, 2, 9, 20)), (64, 2, (1, 1, 8, 8))],
)
def test_in_counter_mode_copy_takes_the_mask_as_the_count_of_each_repeat(
    machine: Machine, elements: int, repeats: int, strides: tuple[int, int, int, int], in_register: bool
) -> None:
    machine.reset()
    source, target, per_block = 16384, 0, BLOCK_BYTES // 4
    machine.put(source, np.arange(8192, dtype=np.int32) + 1)
    wanted = machine.ub.copy()
    for repeat in range(repeats):
        for block in range(-(-elements // per_block)):
            to = target + (repeat * strides[2] + block * strides[0]) * BLOCK_BYTES
            start = source + (repeat * strides[3] + block * strides[1]) * BLOCK_BYTES
            length = 4 * min(per_block, elements - block * per_block)
            wanted[to : to + length] = wanted[start : start + length]
    machine.call("SetMaskCount")
    if in_register:
        machine.call("SetVectorMask", 0, elements)
    machine.call("Copy", target, source, 0 if in_register else elements, repeats, *strides)
    np.testing.assert_array_equal(machine.ub, wanted)


def test_gather_mask_leaves_normal_mode_with_its_mask(machine: Machine) -> None:
    machine.call("SetMaskCount")
    machine.call("GatherMask", DST, SRC, 0b101)
    assert with_register(machine, 2) == [0, 2, LANES, LANES + 2]


def test_broadcasting_blocks_leaves_all_lanes(machine: Machine) -> None:
    machine.call("SetVectorMask", 0, 0b101)
    machine.call("Brcb", DST, SRC, 1)
    assert with_register(machine) == list(range(LANES))


def test_calls_without_an_instruction_for_the_width_build_and_are_a_fault_where_they_are_reached(
    machine: Machine,
) -> None:
    with pytest.raises(MachineFault, match="no instruction for elements of 1 bytes"):
        machine.call("Copy bytes", DST, SRC)
