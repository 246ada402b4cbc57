"""Allowed and forbidden twins of every declared contract: a fault of the second names call and rule."""

from __future__ import annotations

import pytest
from composed_machine import RUNTIME
from vector_machine import Machine, MachineFault, build_machine

from npu_daemon.simulator.contracts import NumberRange, OverlapRow, contracts, instruction_overlaps, ranges

UB_BYTES = 192 * 1024
DST, FAR, TMP = 32 * 1024, 64 * 1024, 8 * 1024 * 20
BLOCK_BYTES = 32
FORBIDDEN = "dst overlaps"
# Elements of other widths, which test_vector_cast.py and test_vector_elementwise.py overlap.
ELSEWHERE = {"Axpy", "MulAddDst", "Cast", "Cast64"}


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Machine:
    runtime = [*RUNTIME, "quantization"]
    return build_machine("contracts", runtime, request.config.cache.mkdir("vector_machine"))


def fault_of(machine: Machine, name: str, *arguments: int) -> str:
    machine.reset(UB_BYTES)
    machine.view(0, "float32", UB_BYTES // 4)[:] = 0.0
    try:
        machine.call(name, *arguments)
    except MachineFault as fault:
        return str(fault)
    return ""


@pytest.mark.parametrize("contract", contracts(), ids=lambda each: each.name)
def test_a_library_call_is_held_to_its_overlap(machine: Machine, contract: OverlapRow) -> None:
    name = contract.name
    assert fault_of(machine, name, DST, FAR, TMP) == ""
    same, part = fault_of(machine, name, DST, DST, TMP), fault_of(machine, name, DST + BLOCK_BYTES, DST, TMP)
    if contract.rule == "Apart":
        assert same.startswith(f"{contract.call}: {FORBIDDEN}"), same
        assert part.startswith(f"{contract.call}: {FORBIDDEN}"), part
    else:
        assert same == ""
        assert contract.rule == "Free" or FORBIDDEN in part, part


@pytest.mark.parametrize(
    "contract",
    [each for each in instruction_overlaps() if each.rule != "Free" and each.name not in ELSEWHERE],
    ids=lambda each: each.name,
)
def test_an_instruction_is_held_to_its_overlap(machine: Machine, contract: OverlapRow) -> None:
    name = f"instruction {contract.name}"
    assert fault_of(machine, name, DST, FAR, TMP) == ""
    same = fault_of(machine, name, DST, DST, TMP)
    # A repeat that begins 256 bytes on is the next one of the source; a mask of bits is shorter than that.
    shifts = [(256, 0), (0, 256), (BLOCK_BYTES, 0)] if contract.rule == "Apart" else [(256, 0)]
    shifted = [fault_of(machine, name, DST + dst, DST + src, TMP) for dst, src in shifts]
    assert any(fault.startswith(f"{contract.name}: {FORBIDDEN}") for fault in shifted), shifted
    assert same.startswith(f"{contract.name}: {FORBIDDEN}") if contract.rule == "Apart" else same == "", same


@pytest.mark.parametrize("bounds", ranges(), ids=lambda each: each.name)
def test_a_number_is_held_to_its_range(machine: Machine, bounds: NumberRange) -> None:
    """An allowed number may be more than the memory of this machine holds, which is another fault."""
    name, told = f"range {bounds.name}", f"{bounds.parameter} is"
    assert told not in fault_of(machine, name, -(-bounds.least // bounds.multiple) * bounds.multiple)
    outside = [bounds.most + bounds.multiple] if bounds.most < 65535 else []
    outside += [bounds.least - 1] if bounds.least > 0 else []
    outside += [bounds.most - 1] if bounds.multiple == 16 else []
    if bounds.most < 65535:
        assert told not in fault_of(machine, name, bounds.most)
    for value in outside:
        fault = fault_of(machine, name, value)
        assert fault.startswith(f"{bounds.call}: "), fault
        assert told in fault, fault
    if bounds.multiple == BLOCK_BYTES:
        assert "expected a multiple of 32" in fault_of(machine, name, BLOCK_BYTES + 4)
