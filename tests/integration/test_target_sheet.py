"""What the target sheet tells of costs, against the pricing program: one mechanism at a time, on 910B2."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from traces import (
    GM,
    GM_BASE,
    MTE3,
    Pricer,
    S,
    V,
    access_scalar,
    copy_in,
    copy_out,
    hand_over,
    idle_scalar,
    record,
    vector,
)

from ascend_gym.search.llm.sheets import sheets
from ascend_gym.suite.loader import load_operator
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.simulator.target import target_sheet

SHEET = target_sheet("910B2")
OF_CALL = 2 * 1.4 + 1  # cycles of the scalar unit for each record of a trace made by hand


@pytest.fixture(scope="module")
def priced(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Pricer:
    return Pricer(simulator.toolchain.price_program, tmp_path_factory.mktemp("sheet"), "910B2")


def _cycles(priced: Pricer, block: bytes, times: int = 100) -> float:
    """Return what a block takes that is repeated, without launch, first and last steps."""
    more, fewer = (priced.task_us([block * count]) for count in (2 * times, times))
    return (more - fewer) * SHEET.clock_mhz / times


def _vector_cycles(priced: Pricer, name: str, repeats: int) -> float:
    """Return what an instruction takes in a chain in which each needs the results of the one before."""
    return _cycles(
        priced, vector(name, (0, 0, 0x10100)[: 3 if name == "Div" else 2], repeats, element_bytes=4)
    )


@pytest.mark.parametrize("rate", SHEET.vector_rates, ids=lambda rate: rate.group)
def test_start_and_rate_of_each_class_of_instruction(priced: Pricer, rate) -> None:
    name = rate.instructions[-1]
    name = "Adds" if rate.group == "simple" else name
    few, many = (_vector_cycles(priced, name, repeats) for repeats in (1, 101))
    each = (many - few) / 100
    assert 64 / each == pytest.approx(rate.elems_32bit, rel=0.02)
    functions = ("Exp", "Ln", "Sqrt", "Div")
    start = SHEET.function_start_cycles if name in functions else SHEET.vector_start_cycles
    assert few - each == pytest.approx(start, abs=1.5)  # and a cycle of issue


def test_barriers_cost_what_the_sheet_says(priced: Pricer) -> None:
    add = vector("Adds", (0, 0), 1, element_bytes=4)
    own = record("PipeBarrier", pipes=(S, V))
    assert _cycles(priced, add + own) == pytest.approx(_cycles(priced, add), abs=0.1)  # as the compiler's
    lone = _cycles(priced, record("PipeBarrier", pipes=(S, MTE3)))
    assert lone == pytest.approx(SHEET.scalar.barrier_cycles, abs=0.1)
    assert _cycles(priced, own) - OF_CALL < SHEET.scalar.vector_barrier_cycles


def test_flags_of_the_kernel_cost_no_more_than_those_of_the_compiler(priced: Pricer) -> None:
    add = vector("Add", (0, 0, 0x100), 1)
    by_hand, inserted = (_cycles(priced, add + flags + access_scalar(0)) for flags in (hand_over(V, S), b""))
    assert by_hand <= inserted


def test_rows_of_a_copy_cost_what_the_sheet_says(priced: Pricer) -> None:
    """Rows of whole blocks, with a rest of less than 32 bytes, that share lines, that are off the grid."""
    copies, rows = SHEET.copies, 64

    def of_row(row_bytes: int, stride: int) -> float:
        return _cycles(priced, copy_in(0, GM_BASE, rows, row_bytes, stride), 20) / rows

    shared = copies.start_cycles / rows
    whole = 256 / copies.core_l2_bytes_per_cycle + copies.burst_cycles + shared
    assert of_row(256, 1024) == pytest.approx(whole, abs=0.05)
    assert of_row(200, 1024) - whole == pytest.approx(copies.odd_row_cycles, abs=0.05)
    assert of_row(256, 256) - whole == pytest.approx(copies.start_cycles / 2, abs=0.2)  # each second one
    lines_off_grid = (15 * 2560 + 2048) / 16  # one row in 16 begins on a line
    off = lines_off_grid / copies.core_l2_bytes_per_cycle * copies.off_grid_factor
    on = 2048 / copies.core_l2_bytes_per_cycle
    assert of_row(2048, 24576 + 32) - of_row(2048, 24576) == pytest.approx(off - on, abs=0.05)


def test_lines_of_global_memory_cost_the_scalar_unit_what_the_sheet_says(priced: Pricer) -> None:
    """The first line, those that follow it, and as many again as the data cache holds."""
    held = SHEET.scalar.data_cache_bytes // 64

    def load(line: int) -> bytes:
        return record("ScalarAccess", [(GM, GM_BASE + 64 * line, 4, 0)], element_bytes=4)

    def cycles(lines: range) -> float:
        loads, idle = (
            priced.task_us([part]) for part in (b"".join(map(load, lines)), idle_scalar() * len(lines))
        )
        return (loads - idle) * SHEET.clock_mhz

    first, stream = SHEET.scalar.global_miss_cycles, SHEET.scalar.global_stream_cycles
    once, beyond = (first + (lines - 1) * stream for lines in (held, 2 * held))
    assert cycles(range(1)) == pytest.approx(first, abs=1)
    assert cycles(range(held)) == pytest.approx(once, rel=0.01)
    again = b"".join(map(load, [*range(held), *range(held)]))
    idle = priced.task_us([idle_scalar() * 2 * held])
    assert (priced.task_us([again]) - idle) * SHEET.clock_mhz == pytest.approx(once, rel=0.01)
    assert cycles(range(2 * held)) == pytest.approx(beyond, rel=0.01)


def test_writes_beside_reads_lose_what_the_buffer_does_not_hold(priced: Pricer) -> None:
    """Beside reads of all cores: as much as the buffer holds, twelve times that, one long piece."""
    size = 65536

    def writing_us(written_bytes: int, writes: int, reads: int) -> float:
        blocks = []
        for core in range(SHEET.aiv_cores):
            base = GM_BASE + core * (1 << 24)
            behind = base + (1 << 23)
            read = (copy_in(0, base + at * size, 1, size) for at in range(reads))
            written = (copy_out(behind + at * written_bytes, size, 1, written_bytes) for at in range(writes))
            blocks.append(b"".join([*read, *written]))
        return priced.busy_us(blocks, "mte3")

    buffer = int(SHEET.copies.write_buffer_bytes)
    assert writing_us(buffer, 1, 16) == pytest.approx(writing_us(buffer, 1, 0), rel=0.02)
    assert writing_us(buffer, 12, 16) > 2.5 * writing_us(buffer, 12, 0)
    alone_us, beside_us = (writing_us(16 * buffer, 1, reads) for reads in (0, 16))
    assert alone_us * 15 / 16 / beside_us == pytest.approx(1 - SHEET.copies.write_yield, rel=0.1)


@pytest.mark.parametrize("cores", [8, 32])
def test_hbm_gives_fewer_cores_what_the_sheet_says(priced: Pricer, cores: int) -> None:
    spec = load_operator("add")
    told = sheets(spec, spec.baseline, SHEET)
    blocks = [
        b"".join(copy_in(0, GM_BASE + (core * 64 + at) * 65536, 1, 65536) for at in range(64))
        for core in range(cores)
    ]
    rate = cores * 64 * 65536 / priced.busy_us(blocks, "mte2") / 1e3
    (gb_per_s,) = re.findall(rf"\b{cores} cores (\d+)[^\n]* GB/s", told)
    assert rate == pytest.approx(int(gb_per_s), rel=0.05)


@pytest.mark.parametrize("groups", [1, 8, 24])
def test_an_empty_launch_on_both_kinds_of_cores(
    simulator: SimulatorBackend, tmp_path: Path, groups: int
) -> None:
    priced = Pricer(simulator.toolchain.price_program, tmp_path, "910B2", mixed=True)
    told_us = {each.blocks: each.mixed_us for each in SHEET.launches}[groups]
    assert priced.task_us([b""] * (3 * groups)) == pytest.approx(told_us, abs=0.02)
