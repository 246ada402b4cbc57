"""Queues of buffers: what may be allocated and freed when."""

from __future__ import annotations

import pytest
from vector_machine import Machine, MachineFault, build_machine


@pytest.fixture
def machine(request: pytest.FixtureRequest) -> Machine:
    machine = build_machine("queue", [], request.config.cache.mkdir("vector_machine"))
    machine.reset()
    return machine


@pytest.mark.parametrize("buffer_bytes", [0, 256])
def test_buffers_are_freed_one_by_one(machine: Machine, buffer_bytes: int) -> None:
    machine.call("init", 2, buffer_bytes)
    for _ in range(3):  # buffers of no length share an address, and are two all the same
        machine.call("allocate")
        machine.call("allocate")
        with pytest.raises(MachineFault, match="all 2 buffers of the queue are in use"):
            machine.call("allocate")
        machine.call("release", 0)
        machine.call("release", 1)
        machine.call("init", 2, buffer_bytes)


@pytest.mark.parametrize("buffer_bytes", [0, 256])
def test_a_buffer_is_not_freed_twice(machine: Machine, buffer_bytes: int) -> None:
    machine.call("init", 2, buffer_bytes)
    machine.call("allocate")
    machine.call("release", 0)
    with pytest.raises(MachineFault, match="freed twice"):
        machine.call("release", 0)
