"""What cores that ask for the same data at a time cost each other, on traces made by hand.

Sizes are those of the published measurements that docs/fidelity.md lists; shapes follow their samples.
"""

from __future__ import annotations

import pytest
from traces import BYPASSES_L2, GM_BASE, Pricer, copy_in, copy_rows

CORES = 48
CUBE_CORES = 24
KIB = 1 << 10


def matrix(cores: int, *, in_turn: bool) -> list[bytes]:
    """Blocks that each read the whole of a matrix past L2: all the same part at a time, or each another."""
    blocks = []
    for core in range(cores):
        block = b""
        for step in range(cores):
            part = (step + core * in_turn) % cores
            block += copy_in(0, GM_BASE + part * 128 * 1024, 128, 128, 1024, BYPASSES_L2)
        blocks.append(block)
    return blocks


def test_reading_the_same_addresses_at_the_same_time_holds_all_up(pricer: Pricer) -> None:
    """data_copy UB S7 and S8: 0.64 TB/s, two thirds of what each core gets when it reads another part."""
    together, in_turn = (pricer.busy_us(matrix(CORES, in_turn=turn), "mte2") for turn in (False, True))
    assert together / in_turn == pytest.approx(474.7 / 307.4, rel=0.1)
    bytes_read = CORES * CORES * 128 * 128
    assert bytes_read / together / 1e6 == pytest.approx(0.636, rel=0.15)


def operands(*, staggered: bool) -> list[bytes]:
    """Blocks that read the operands of 768 x 6144 x 2048 halfs, six cores along rows and four along columns.

    All go through k from its start, or each from a place of its own.
    """
    steps, right = 24, GM_BASE + 768 * 6144 * 2
    blocks = []
    for core in range(CUBE_CORES):
        rows = GM_BASE + core % 6 * 128 * 6144 * 2
        block = b""
        for step in range(2 * steps):
            k, columns = (step + core * staggered) % steps, core // 6 * 1024 + step // steps * 512
            block += copy_rows(0, rows + k * 512, 128, 512, 6144 * 2)
            block += copy_rows(64 * KIB, right + k * 256 * 4096 + columns, 256, 512, 4096)
        blocks.append(block)
    return blocks


def test_starting_at_different_places_keeps_cores_from_waiting_for_the_same_lines(
    cube_pricer: Pricer,
) -> None:
    """matmul_k_reorder_load: 98.7 us in the same order, 85.7 in an order of its own; of MTE2 90 and 69.9."""
    orders = [operands(staggered=each) for each in (False, True)]
    together, apart = (cube_pricer.busy_us(blocks, "mte2") for blocks in orders)
    assert together / apart == pytest.approx(90 / 69.87, rel=0.15)
    together, apart = (cube_pricer.task_us(blocks) for blocks in orders)
    assert together / apart == pytest.approx(98.72 / 85.68, rel=0.1)


def test_a_line_on_its_way_is_not_in_the_cache_yet(pricer: Pricer) -> None:
    """One core fetches it, and all who ask meanwhile queue for it; later it comes from L2."""
    once = [copy_in(0, GM_BASE, 64, 2048, 4096)]
    alone, twice = (pricer.price([once[0] * times])["cores"][0]["mte2_cycles"] for times in (1, 2))
    together = pricer.price(once * CORES)["cores"]
    assert sum(core["read_miss_bytes"] for core in together) == 64 * 2048
    assert together[0]["mte2_cycles"] > 1.1 * alone
    assert min(core["mte2_cycles"] for core in together) > 1.1 * (twice - alone)
    assert twice - alone < 0.5 * alone
