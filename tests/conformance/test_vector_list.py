"""The descriptor block of tensor lists, what ListTensorDesc reads from it, and the workspace."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from vector_machine import Machine, MachineFault, build_machine

RUNTIME = ["list_descriptor", "workspace"]
SYSTEM_BYTES = 16 * 2**20


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Machine:
    return build_machine("list", RUNTIME, request.config.cache.mkdir("vector_machine"))


def build(machine: Machine, tensors: Sequence[tuple[int, Sequence[int]]]) -> list[int]:
    """Build a descriptor of (address, shape) pairs and return its words."""
    machine.reset()
    flat = [word for address, shape in tensors for word in (address, len(shape), *shape)]
    machine.call("build", len(tensors), *flat)
    count = int(machine.view(0, "int64", 1)[0])
    return [int(word) for word in machine.view(8, "int64", count)]


def answer(machine: Machine, name: str, *arguments: int, words: int = 1) -> list[int]:
    machine.call(name, *arguments)
    return [int(word) for word in machine.view(0, "int64", words)]


def test_words_of_a_list_of_one_rank(machine: Machine) -> None:
    words = build(machine, [(0x1000, (3, 5)), (0x2000, (7, 11))])
    assert words == [56, 2, 3, 5, 2 | 1 << 32, 7, 11, 0x1000, 0x2000]


def test_a_scalar_is_described_as_one_element(machine: Machine) -> None:
    assert build(machine, [(0x1000, ())]) == [24, 1, 1, 0x1000]


def test_reading_a_list(machine: Machine) -> None:
    build(machine, [(0x1000, (3, 5)), (0x2000, (7, 11)), (0x3000, (2, 2))])
    assert answer(machine, "size") == [3]
    assert [answer(machine, "data", i)[0] for i in range(3)] == [0x1000, 0x2000, 0x3000]
    assert answer(machine, "desc", 1, words=6) == [2, 1, 0x2000, 77, 7, 11]


def test_every_read_of_a_list_is_a_scalar_access(machine: Machine) -> None:
    build(machine, [(0x1000, (3, 5))])
    machine.call("data", 0)
    assert {line.name for line in machine.trace()} == {"ScalarAccess"}


def test_short_form_has_addresses_only(machine: Machine) -> None:
    machine.reset()
    machine.call("build short", 3, 0x10, 0x20, 0x30)
    assert answer(machine, "size") == [3]
    assert answer(machine, "data", 2) == [0x30]


def test_mixed_ranks_have_addresses_but_no_size(machine: Machine) -> None:
    build(machine, [(0x1000, (3,)), (0x2000, (7, 11)), (0x3000, (2, 3, 4))])
    assert answer(machine, "data", 2) == [0x3000]
    with pytest.raises(MachineFault, match="different ranks"):
        machine.call("size")


def test_tensors_beyond_the_list_are_refused(machine: Machine) -> None:
    build(machine, [(0x1000, (3,))])
    with pytest.raises(MachineFault, match="GetDesc of tensor 1 of a list of 1"):
        machine.call("desc", 1)
    with pytest.raises(MachineFault, match="belongs to no tensor"):
        machine.call("data", 100)


def test_workspace_parts(machine: Machine) -> None:
    machine.reset()
    assert answer(machine, "user workspace of none") == [0]
    for offset in (0, 64, SYSTEM_BYTES):
        assert answer(machine, "user workspace", offset) == [SYSTEM_BYTES]
    assert answer(machine, "system workspace")[0] != 0


def test_only_the_workspace_has_a_user_part(machine: Machine) -> None:
    build(machine, [(0x1000, (3,))])
    with pytest.raises(MachineFault, match="does not point into the workspace"):
        machine.call("user workspace elsewhere")
