"""Direction and size of each mechanism of the pricing model, on traces made by hand.

Sizes are those of the published measurements that docs/fidelity.md lists; shapes follow their samples.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from traces import (
    ALL_OF_KIND,
    ATOMIC,
    BYPASSES_L2,
    FIX,
    GM,
    GM_BASE,
    MTE2,
    MTE3,
    PAST_CACHE,
    UNIT_FLAG,
    M,
    Pricer,
    S,
    V,
    access_scalar,
    copy_in,
    copy_out,
    copy_result,
    copy_rows,
    hand_over,
    idle_scalar,
    meet_others,
    multiply,
    record,
    set_flag,
    vector,
    wait_flag,
)

CORES = 48
MB = 1 << 20


def additions(
    cores: int, tile_bytes: int, tiles: int, *, buffers: int = 1, read_flag: int = 0, tensor_bytes: int = 0
) -> list[bytes]:
    """Blocks that add two tensors tile by tile, with one buffer or two."""
    tensor = tensor_bytes or cores * tiles * tile_bytes
    blocks = []
    for core in range(cores):
        block = b""
        for tile in range(tiles):
            flag, place = tile % buffers, 3 * tile_bytes * (tile % buffers)
            at = GM_BASE + (core * tiles + tile) * tile_bytes
            x, y, z = place, place + tile_bytes, place + 2 * tile_bytes
            block += wait_flag(V, MTE2, flag) if tile >= buffers else b""
            block += copy_in(x, at, 1, tile_bytes, flag=read_flag)
            block += copy_in(y, at + tensor, 1, tile_bytes, flag=read_flag)
            block += hand_over(MTE2, V, flag)
            block += wait_flag(MTE3, V, flag) if tile >= buffers else b""
            block += vector("Add", (z, x, y), tile_bytes // 256)
            block += set_flag(V, MTE2, flag) + hand_over(V, MTE3, flag)
            block += copy_out(at + 2 * tensor, z, 1, tile_bytes) + set_flag(MTE3, V, flag)
        blocks.append(block)
    return blocks


def rows(
    cores: int,
    bursts: int,
    burst_bytes: int,
    row_bytes: int,
    copies: int,
    *,
    split: bool = False,
    flag: int = 0,
) -> list[bytes]:
    """Blocks that read their share of a matrix, ``bursts`` rows at a time, from left to right."""
    blocks = []
    for core in range(cores):
        block = b""
        for copy in range(copies):
            at = GM_BASE + core * bursts * row_bytes + copy * burst_bytes
            if split:
                block += b"".join(copy_in(0, at + row * row_bytes, 1, burst_bytes) for row in range(bursts))
            else:
                block += copy_in(0, at, bursts, burst_bytes, row_bytes, flag)
        blocks.append(block)
    return blocks


def test_a_bank_conflict_costs_what_was_measured(pricer: Pricer) -> None:
    """bank_conflict_ub: 88.4 cycles an addition of 64 repeats, 154.2 with both sources in one bank group."""
    apart, together = (
        pricer.price([vector("Add", addresses, 64, element_bytes=4) * 1000])["cores"][0]["vec_cycles"] / 1000
        for addresses in ((0x20000, 0, 0x10100), (0x14100, 0, 0x10000))
    )
    assert apart == pytest.approx(88.4, rel=0.03)
    assert together == pytest.approx(154.2, rel=0.03)


def test_a_row_that_is_read_twice_is_read_once(pricer: Pricer) -> None:
    """A bank group gives one row a cycle (docs/hardware.md section 7): both operands of x * x get it."""
    squares, products = (
        pricer.busy_us([vector("Mul", (0x18000, 0, other), 64, element_bytes=4) * 9], "vec")
        for other in (0, 0x4000)
    )
    assert squares < 0.6 * products


@pytest.mark.parametrize(("element_bytes", "cycles"), [(4, 2), (2, 4)])
def test_each_part_of_a_division_has_its_own_conflicts(
    pricer: Pricer, element_bytes: int, cycles: int
) -> None:
    """The guide has 32 elements a cycle; fits on a 910B3 have half of that, and half of Add's rate too."""

    def slope(second: int) -> float:
        one, many = (
            pricer.busy_us([vector("Div", (0x18000, 0, second), repeats, element_bytes=element_bytes)], "vec")
            for repeats in (64, 128)
        )
        return (many - one) / 64 * 1850

    assert slope(0x4100) == pytest.approx(cycles, rel=0.05)
    assert slope(0x4000) == pytest.approx(2 * cycles, rel=0.05)


def test_a_barrier_costs_a_wait_where_a_result_is_needed(pricer: Pricer) -> None:
    """Casts of foreach_addcdiv_scalar with barriers between them, which order nothing, do not wait."""

    def cycles(*, needed: bool, barrier: bytes) -> float:
        places = [0x10000 + 0x800 * (step % 16) for step in range(100)]
        steps = [
            vector("Exp", (place, before if needed else 0), 8) + barrier
            for before, place in zip([places[-1], *places], places, strict=False)
        ]
        return pricer.busy_us([b"".join(steps)], "vec") * 1850 / 100

    barrier = record("PipeBarrier", pipes=(V, V))
    unneeded, needed = (cycles(needed=each, barrier=barrier) for each in (False, True))
    assert cycles(needed=False, barrier=b"") < unneeded < needed - 10
    assert cycles(needed=True, barrier=b"") == pytest.approx(needed, rel=0.1)


def test_conflicts_are_told_by_instruction(pricer: Pricer) -> None:
    """Both reads of Add(x, x, y) are of one bank group; Muls(x, x, 2) reads once."""
    added = vector("Add", (0, 0, 0x4000), 64, element_bytes=4)
    scaled = vector("Muls", (0, 0), 64, element_bytes=4)
    conflicts = pricer.price([added * 10 + scaled * 10])["bank_conflicts"]
    assert conflicts == {"Add": {"lost_cycles": 640, "cycles": 1280}}


def test_writes_to_one_bank_group_take_turns(pricer: Pricer) -> None:
    """bank_conflict_nd2nz: eight blocks a repeat, all to one group of 16 banks."""
    apart, together = (
        pricer.busy_us([vector("CopyUbToUb", (0x10000, 0), 144, (stride, 1)) * 100], "vec")
        for stride in (145, 144)
    )
    assert together / apart == pytest.approx(8, rel=0.2)


def test_large_tiles_and_double_buffering_help(pricer: Pricer) -> None:
    """add_high_performance: 306.6 us with tiles of 8 KB, 264.0 with two buffers of 32 KB."""
    small = pricer.task_us(additions(CORES, 8192, 32, tensor_bytes=128 * MB))
    large = pricer.task_us(additions(CORES, 32768, 8, tensor_bytes=128 * MB))
    double = pricer.task_us(additions(CORES, 32768, 8, buffers=2, tensor_bytes=128 * MB))
    assert double < large < small
    assert small / double > 1.05


def test_all_cores_are_some_twenty_times_faster_than_one(pricer: Pricer) -> None:
    """add_high_performance: 6909.6 us with one core, 306.6 with 48 that share HBM."""
    one = pricer.task_us(additions(1, 8192, CORES * 24))
    assert one / pricer.task_us(additions(CORES, 8192, 24)) == pytest.approx(20, rel=0.35)


def test_reading_past_l2_helps_what_is_larger_than_it(pricer: Pricer) -> None:
    """add_high_performance: 264.0 us through L2, 187.7 past it, as no results are evicted."""
    through, past = (
        pricer.task_us(additions(CORES, 32768, 85, buffers=2, read_flag=flag)) for flag in (0, BYPASSES_L2)
    )
    assert through / past == pytest.approx(264.0 / 187.7, rel=0.15)


def test_what_was_read_lately_is_read_faster(pricer: Pricer) -> None:
    once = rows(CORES, 16, 2048, 24 * 2048, 24)
    again = pricer.busy_us([block * 2 for block in once], "mte2") - pricer.busy_us(once, "mte2")
    assert pricer.busy_us(once, "mte2") / again > 2.5


def test_copies_of_a_pipe_arrive_in_their_order(pricer: Pricer) -> None:
    """What the cache has is not there before what an earlier copy fetches from HBM: a flag is for both."""

    def fetches(cached: bytes) -> list[bytes]:
        block = copy_in(0x8000, GM_BASE, 1, 256)
        for line in range(1, 50):
            block += copy_in(0, GM_BASE + line * 4096, 1, 256) + cached
            block += hand_over(MTE2, V) + vector("Add", (0x10000, 0x10000, 0x10000), 1) + hand_over(V, MTE2)
        return [block]

    assert pricer.task_us(fetches(copy_in(0x8000, GM_BASE, 1, 256))) >= pricer.task_us(fetches(b""))


def test_short_rows_past_l2_cost_as_much_as_longer_ones(pricer: Pricer) -> None:
    """data_copy UB S7 and L1 S6: some 256 B of HBM's time for 128 B, which S2 through L2 does not pay."""
    through, past = (
        [pricer.busy_us(rows(CORES, 64, size, 24576, 12, flag=flag), "mte2") for size in (128, 256, 512)]
        for flag in (0, BYPASSES_L2)
    )
    assert past[0] / through[0] == pytest.approx(1.45, rel=0.1)
    assert past[0] / past[1] > 0.65
    assert past[1:] == pytest.approx(through[1:], rel=0.01)


def test_a_copy_per_row_costs_more_than_one_of_many_rows(pricer: Pricer) -> None:
    """data_copy S1 and S2: 20.6 cycles a copy of 128 B, 8.3 a burst of 128 B."""
    one, many = (
        pricer.busy_us(rows(CORES, 64, 128, 24576, 12, split=split), "mte2") for split in (False, True)
    )
    assert many / one == pytest.approx(20.63 / 8.31, rel=0.2)


def test_rows_that_are_no_whole_blocks_take_longer(pricer: Pricer) -> None:
    """swi_glu: rows of 200 B that follow each other, and rows of 256 B at the same distances."""
    odd, whole = (
        pricer.task_us(rows(CORES, 64, burst_bytes, 400 if burst_bytes == 200 else 512, 40))
        for burst_bytes in (200, 256)
    )
    assert odd > 1.3 * whole


def test_rows_off_the_512_byte_grid_are_slower(pricer: Pricer) -> None:
    """data_copy S5 and S4: 1.48 TB/s of rows of 24576 B, 1.17 TB/s of rows of 24574 B."""
    aligned, off = (
        pricer.busy_us(rows(CORES, 64, 2048, row_bytes, 12), "mte2") for row_bytes in (24576, 24574)
    )
    assert off / aligned == pytest.approx(1.27, rel=0.08)


def test_double_buffering_hides_additions_behind_copies(pricer: Pricer) -> None:
    """One core, tiles of 8 KB: of 780 cycles a tile, two copies in a row take 540."""
    single, double = (pricer.task_us(additions(1, 8192, 400, buffers=buffers)) for buffers in (1, 2))
    assert double / single == pytest.approx(540 / 780, rel=0.05)


def test_small_writes_are_as_fast_beside_reads_as_alone(pricer: Pricer) -> None:
    """add_high_performance cases 1 and 2: 295 cycles a write of 8 KB, on one core and on 48 that read."""
    for cores in (1, CORES):
        blocks = additions(cores, 8192, 40, tensor_bytes=128 * MB)
        assert pricer.busy_us(blocks, "mte3") / 40 * 1850 == pytest.approx(295, rel=0.05)


def test_large_writes_wait_for_reads(pricer: Pricer) -> None:
    """add_high_performance case 5: 3476 cycles a write of 32 KB beside reads that bypass L2, 1062 alone."""
    one, all_cores = (
        pricer.busy_us(
            additions(cores, 32768, 40, buffers=2, read_flag=BYPASSES_L2, tensor_bytes=128 * MB), "mte3"
        )
        for cores in (1, CORES)
    )
    assert one / 40 * 1850 == pytest.approx(1062, rel=0.1)
    assert all_cores / 40 * 1850 == pytest.approx(3476, rel=0.25)


def matrix_rows(row_bytes: int, rows: int, copies: int) -> list[bytes]:
    """A block that copies the rows of a small matrix to L1 again and again: all but once from L2."""
    return [copy_rows(0, GM_BASE, rows, row_bytes, 16384) * copies]


def test_short_rows_reach_l1_more_slowly(cube_pricer: Pricer) -> None:
    """matmul_high_performance case 1: 3.6 cycles a row of 128 B; matmul_basic S1: 82 bytes per cycle."""
    short, long = (
        (cube_pricer.busy_us(matrix_rows(size, 256, 40), "mte2") * 1850) / (256 * 40) for size in (128, 512)
    )
    assert short == pytest.approx(3.4, rel=0.1)
    assert 512 / long == pytest.approx(82, rel=0.1)


def test_rows_of_one_line_take_turns(cube_pricer: Pricer) -> None:
    """The guide's page on the same address: as separate copies do in data_copy UB S1, 12.4 cycles each."""
    apart, together = (
        cube_pricer.busy_us([copy_rows(0, GM_BASE, 512, 32, stride) * 20], "mte2") * 1850 / (512 * 20)
        for stride in (512, 32)
    )
    assert apart < 4
    assert together - apart == pytest.approx(12.4 * 15 / 16, rel=0.1)


def test_whole_lines_do_not_wait_for_each_other(cube_pricer: Pricer) -> None:
    """quant_group_matmul S0: 96 bytes a cycle in rows of 1 KB that follow each other."""
    copies = [copy_rows(0, GM_BASE, 128, 1024, 1024) * 40]
    assert 128 * 1024 * 40 / (cube_pricer.busy_us(copies, "mte2") * 1850) == pytest.approx(96, rel=0.07)


def results(blocks: int, *, unit_flag: bool) -> list[bytes]:
    """A block that multiplies 128 x 256 x 512 in eight steps and copies the result out, several times."""
    block = b""
    for index in range(blocks):
        last = UNIT_FLAG if unit_flag else 0
        block += multiply(128, 256, 64) * 7 + multiply(128, 256, 64, flag=last)
        block += b"" if unit_flag else hand_over(M, FIX)
        block += copy_result(GM_BASE + index * 512, 128, 256, 16384, flag=last)
    return [block]


def test_the_unit_flag_lets_results_leave_while_others_are_computed(cube_pricer: Pricer) -> None:
    """matmul_basic S1 and matmul_high_performance case 5: 3477 and 1037 cycles of Fixpipe a block.

    A copy waits for its multiplication in the pipe with the unit flag, and before it without.
    """
    with_flag, without = (results(8, unit_flag=flag) for flag in (True, False))
    assert cube_pricer.task_us(without) / cube_pricer.task_us(with_flag) == pytest.approx(1.08, rel=0.05)
    fixpipe = [cube_pricer.busy_us(blocks, "fixpipe") / 8 * 1850 for blocks in (with_flag, without)]
    assert fixpipe[1] == pytest.approx(1037, rel=0.05)
    assert fixpipe[0] > 3 * fixpipe[1]


def test_a_result_never_leaves_before_it_is_there(cube_pricer: Pricer) -> None:
    """However far ahead of the pipes the scalar unit is when it issues the copy out."""
    slow = [multiply(128, 256, 64) * 40 + copy_result(GM_BASE, 128, 256, 16384)]
    core = cube_pricer.price(slow)["cores"][0]
    assert core["total_cycles"] > core["mac_cycles"] + core["fixpipe_cycles"]


def test_atomic_writes_cost_more(pricer: Pricer) -> None:
    plain, atomic = (
        pricer.task_us([copy_out(GM_BASE + core * MB, 0, 1, 8192, flag=flag) * 32 for core in range(CORES)])
        for flag in (0, ATOMIC)
    )
    assert plain < atomic < 3 * plain


def test_more_blocks_than_cores_run_in_waves(pricer: Pricer) -> None:
    """Each wave starts its blocks anew, at less than the first start."""
    work = additions(2 * CORES, 8192, 4)
    one, two = pricer.task_us(work[:CORES]), pricer.task_us(work)
    assert 1.1 < two / one < 1.9


def test_an_empty_kernel_costs_its_launch(pricer: Pricer) -> None:
    """Whole kernels were measured at 2.1 us on 8 cores and 3.1 to 5.5 us on 16 to 48, after a warm-up."""
    one, eight, all_cores = (pricer.task_us([b""] * blocks) for blocks in (1, 8, CORES))
    assert 1 < one < eight < 2 < all_cores < 5.5


def test_code_is_fetched_by_lines_once_a_core_and_in_turn(pricer: Pricer) -> None:
    """Requests of cores for one unit are served in turn, says the guide; a line has 16 instructions."""

    def fetch_us(instructions: int, blocks: int) -> float:
        return pricer.task_us([idle_scalar(instructions)] * blocks) - pricer.task_us([idle_scalar()] * blocks)

    one, eight, all_cores = (fetch_us(200, blocks) for blocks in (1, 8, CORES))
    assert one < eight < all_cores < 3 * one
    assert fetch_us(200, 2 * CORES) <= all_cores
    line = fetch_us(16, 1)
    assert fetch_us(1, 1) == pytest.approx(line)
    assert fetch_us(17, 1) > line


def test_a_first_launch_costs_more_the_more_cores_there_are(pricer: Pricer, cold_pricer: Pricer) -> None:
    """The documentation tells of some 20 us with all cores of an A2, and of less with fewer."""
    first = [cold_pricer.task_us([b""] * blocks) for blocks in (1, CORES)]
    assert 1 < first[0] < 5
    assert 10 < first[1] < 21
    assert first[1] > pricer.task_us([b""] * CORES)


def test_prices_are_the_same_to_the_last_bit(pricer: Pricer) -> None:
    blocks = additions(CORES, 8192, 8, buffers=2)
    assert len({pricer.text(blocks) for _ in range(3)}) == 1


@pytest.mark.parametrize("pipe", [S, V, MTE3])
def test_flags_for_other_cores_are_set_by_every_pipe(pricer: Pricer, pipe: int) -> None:
    """The scalar unit too: each core goes on when the one with most work has set its flag."""
    late, early = ([vector("Exp", (0, 0), 100)] * count for count in (40, 1))
    barrier = hand_over(V, S)
    blocks = [b"".join(work) + barrier + meet_others(pipe, ALL_OF_KIND) for work in (late, early)]
    cycles = [core["total_cycles"] for core in pricer.price(blocks)["cores"]]
    assert cycles[0] == pytest.approx(cycles[1], rel=0.05)
    assert pricer.task_us(blocks) > pricer.task_us([block.replace(b"".join(late), b"") for block in blocks])


@pytest.mark.parametrize("repeats_meanwhile", [0, 200])
def test_reading_a_result_without_flags_saves_nothing(pricer: Pricer, repeats_meanwhile: int) -> None:
    """The compiler inserts them, also where the vector unit has long finished."""
    first, meanwhile = vector("Add", (0, 0, 0), 8), copy_in(0x8000, GM_BASE, 1, 4096) * repeats_meanwhile
    wait = hand_over(MTE2, S) if repeats_meanwhile else b""
    with_flags, without = (
        pricer.task_us([(first + meanwhile + wait + flags + access_scalar(0)) * 50])
        for flags in (hand_over(V, S), idle_scalar() * 2)
    )
    assert without >= with_flags


def test_reading_what_nothing_wrote_needs_no_flags(pricer: Pricer) -> None:
    elsewhere, result = (
        pricer.task_us([(vector("Add", (0, 0, 0), 1) + hand_over(V, S, 1) + access_scalar(at)) * 50])
        for at in (0x8000, 0)
    )
    assert elsewhere == result


def test_flags_for_one_pipe_are_no_flags_for_another(pricer: Pricer) -> None:
    """What the scalar unit wrote is ordered for a pipe by a flag to it, or by one of a pipe that had one."""
    write, copy = access_scalar(0, write=True) + hand_over(S, V), copy_out(GM_BASE, 0, 1, 4096)
    with_flags, without, by_vector, by_both = (
        pricer.task_us([(write + flags + copy) * 50])
        for flags in (
            hand_over(S, MTE3),
            idle_scalar() * 2,
            hand_over(V, MTE3),
            hand_over(V, MTE3) + hand_over(S, MTE3),
        )
    )
    assert without >= with_flags
    assert by_vector < by_both


def test_lines_of_global_memory_cost_what_the_data_cache_lacks(pricer: Pricer) -> None:
    """A stream costs less than lines here and there; what is held costs nothing more, until it is cleaned."""
    lines = range(16)

    def read(offsets: Iterable[int], flag: int = 0) -> bytes:
        accesses = [[(GM, GM_BASE + offset, 4, 0)] for offset in offsets]
        return b"".join(record("ScalarAccess", each, element_bytes=4, flag=flag) for each in accesses)

    once = read(64 * line for line in lines)
    clean = record("CleanCache")
    us = {
        name: pricer.task_us([block])
        for name, block in {
            "stream": once,
            "twice": once + read(64 * line + 4 for line in lines),
            "cleaned": once + clean + once,
            "two streams": b"".join(read([64 * line, 64 * line + MB]) for line in lines[:8]),
            "scattered": read(4096 * line for line in lines),
            "past the cache": read((0 for _ in lines), flag=PAST_CACHE),
            "64 KiB": read(MB + 64 * line for line in range(1024)),
            "64 KiB between": once + read(MB + 64 * line for line in range(1024)) + once,
            "idle": idle_scalar() * len(lines),
        }.items()
    }
    fills = {name: each - us["idle"] for name, each in us.items()}
    assert fills["stream"] < fills["two streams"] < fills["scattered"] / 2
    assert fills["scattered"] == pytest.approx(fills["past the cache"])
    assert fills["twice"] < 1.2 * fills["stream"]
    assert fills["cleaned"] == pytest.approx(2 * fills["stream"], rel=0.05)
    assert us["64 KiB between"] - us["64 KiB"] == pytest.approx(fills["cleaned"], rel=0.1)


@pytest.mark.parametrize("rows", [40, 40_000])
def test_bytes_that_no_copy_writes_are_counted_however_scattered_they_are(pricer: Pricer, rows: int) -> None:
    even, odd = (copy_out(GM_BASE + first, 0, rows, 32, 64) for first in (0, 32))
    tensor = f"out {GM_BASE} {64 * rows} y"
    assert pricer.price([even], tensor)["unwritten"] == {"y": 32 * rows}
    assert pricer.price([even], tensor)["first_unwritten"] == {"y": 32}
    assert pricer.price([odd], tensor)["first_unwritten"] == {"y": 0}
    assert pricer.price([even + odd], tensor)["unwritten"] == {}
    assert pricer.price([odd, odd + even], tensor)["unwritten"] == {}
