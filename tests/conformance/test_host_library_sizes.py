"""Scratch sizes and plans that the host side gives for calls of the device library."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from host_side_machine import Host, toolchain, toy

pytestmark = pytest.mark.slow

__all__ = ["toolchain"]

BODY = """
    const ge::Shape shape({3, 100});
    uint32_t found[17] = {};
    AscendC::GetTanhMaxMinTmpSize(shape, 4, false, found[0], found[1]);
    AscendC::GetTanhMaxMinTmpSize(shape, 2, false, found[2], found[3]);
    AscendC::GetSigmoidMaxMinTmpSize(shape, 2, false, found[4], found[5]);
    AscendC::GetFloorMaxMinTmpSize(shape, 4, false, found[6], found[7]);
    found[8] = AscendC::GetSoftMaxMinTmpSize(shape, 4, false);
    found[9] = AscendC::GetSoftMaxMaxTmpSize(shape, 2, false);
    optiling::SoftMaxTiling plan;
    AscendC::SoftMaxTilingFunc(shape, 4, found[8], plan);
    found[10] = plan.get_srcM();
    found[11] = plan.get_srcK();
    AscendC::GetMeanMaxMinTmpSize(1000, 2, 2, false, found[12], found[13]);
    matmul_tiling::MatmulApiTiling planner;
    planner.SetShape(64, 96, 128);
    planner.SetOrgShape(64, 96, 128);
    Plain plain;
    planner.GetTiling(plain);
    found[14] = plain.M;
    found[15] = plain.N;
    found[16] = plain.Ka;
    context->SetBlockDim(1);
    std::memcpy(context->GetRawTilingData()->GetData(), found, sizeof found);
    context->GetRawTilingData()->SetDataSize(sizeof found);
    return ge::GRAPH_SUCCESS;"""


@pytest.fixture(scope="module")
def sizes(toolchain: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, ...]:
    head = '#include <cstring>\n#include "tiling/tiling_api.h"\n'
    plain = "struct alignas(8) Plain { int32_t usedCoreNum, M, N, Ka, rest[48]; };\n"
    text = head + plain + toy(BODY)
    outcome = Host(text, tmp_path_factory.mktemp("sizes"), toolchain).decide()
    return struct.unpack("<17I", outcome.tiling_data)


def test_sizes_of_math_functions_count_their_pieces(sizes: tuple[int, ...]) -> None:
    all_floats = 1280  # 300 floats in whole repeats
    assert sizes[0:2] == (all_floats, 256)
    assert sizes[2:4] == (2 * all_floats, 512)  # half is converted
    assert sizes[4:6] == (768, 256)  # and here it is not
    assert sizes[6:8] == (0, 0)


def test_softmax_needs_room_for_eight_rows(sizes: tuple[int, ...]) -> None:
    assert sizes[8] == 32 + 256 + 256
    assert sizes[9] == sizes[8] + 8 * 416
    assert sizes[10:12] == (3, 100)


def test_mean_keeps_a_sum_for_each_repeat(sizes: tuple[int, ...]) -> None:
    assert sizes[12:14] == (32, 32)  # eight halves, in a whole block


def test_plans_are_written_into_plain_structures_too(sizes: tuple[int, ...]) -> None:
    assert sizes[14:17] == (64, 96, 128)
