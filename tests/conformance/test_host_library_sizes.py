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


AS_PAGES_HAVE_IT = """
    uint32_t found[15] = {}, maxValue = 0, minValue = 0, maxLiveNodeCount = 0, extraBuf = 0;
    std::vector<int64_t> srcDims = {64, 512};
    auto srcShape = AscendC::TensorShape(srcDims);
    std::vector<int64_t> scaleDims = {1, 512};
    auto scaleShape = AscendC::TensorShape(scaleDims);
    bool isTranspose = false;
    const auto in = AscendC::TensorDataType::DT_INT8, out = AscendC::TensorDataType::DT_BF16;
    AscendC::GetAscendAntiQuantMaxMinTmpSize(srcShape, scaleShape, isTranspose, in, out, maxValue, minValue);
    found[0] = maxValue;
    found[1] = minValue;
    found[2] = AscendC::GetAscendAntiQuantMaxTmpSize(srcShape, scaleShape, isTranspose, in, out);
    found[3] = AscendC::GetAscendAntiQuantMinTmpSize(srcShape, scaleShape, isTranspose, in, out);
    AscendC::GetAscendAntiQuantTmpBufferFactorSize(
        srcShape, scaleShape, isTranspose, in, out, maxLiveNodeCount, extraBuf);
    found[4] = maxLiveNodeCount;
    found[5] = extraBuf;
    const auto one = AscendC::TensorShape(std::vector<int64_t>{1});
    found[6] = AscendC::GetAscendAntiQuantMaxTmpSize(srcShape, one, false, in, ge::DT_FLOAT16);
    const auto four = AscendC::TensorShape(std::vector<int64_t>{64, 4});
    found[7] = AscendC::GetAscendAntiQuantMaxTmpSize(srcShape, four, true, ge::DT_INT4, ge::DT_FLOAT16);
    const auto rows = AscendC::TensorShape(std::vector<int64_t>{80, 144});
    found[8] = AscendC::GetSoftMaxFlashMinTmpSize(rows, 2, false, false);
    found[9] = AscendC::GetSoftMaxFlashMaxTmpSize(rows, 2, false, false);
    optiling::SoftMaxTiling flash, shifted;
    AscendC::SoftMaxFlashTilingFunc(rows, 2, found[9], flash, false);
    found[10] = flash.get_srcM();
    found[11] = flash.get_srcK();
    const auto wide = AscendC::TensorShape(std::vector<int64_t>{8, 1024});
    AscendC::GetSoftMaxFlashV3MaxMinTmpSize(wide, 2, 4, maxValue, minValue, true);
    found[12] = maxValue;
    found[13] = minValue;
    AscendC::SoftMaxFlashV3TilingFunc(wide, 2, 4, maxValue, shifted, true);
    found[14] = shifted.get_srcK();
    context->SetBlockDim(1);
    std::memcpy(context->GetRawTilingData()->GetData(), found, sizeof found);
    context->GetRawTilingData()->SetDataSize(sizeof found);
    return ge::GRAPH_SUCCESS;"""


def test_hosts_written_as_pages_show_build(toolchain: Path, tmp_path: Path) -> None:
    head = '#include <cstring>\n#include <vector>\n#include "tiling/tiling_api.h"\n'
    outcome = Host(head + toy(AS_PAGES_HAVE_IT), tmp_path, toolchain).decide()
    found = struct.unpack("<15I", outcome.tiling_data)
    floats_of_columns = 3 * 512 * 4
    assert found[:6] == (floats_of_columns, 3 * 32 * 4, floats_of_columns, 3 * 32 * 4, 12, 0)
    assert found[6:8] == (64 * 512 * 2, 512 // 4 * 2)  # of all values, and of those of a group
    row_bytes = 144 * 4 + 6 * 32
    assert found[8:12] == (544 + row_bytes, 544 + 80 * row_bytes, 80, 144)
    assert found[12:] == (8 * (1024 + 97) * 4, 8 * (1024 + 97) * 4, 1024)
