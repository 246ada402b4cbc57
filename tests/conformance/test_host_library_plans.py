"""Scratch sizes and plans of normalizations, TopK and composed calls, as host functions ask for them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from host_side_machine import Host, toolchain, toy

pytestmark = pytest.mark.slow

__all__ = ["toolchain"]

BODY = """
    const platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());
    uint32_t found[64] = {}, most = 0, least = 0;
    auto note = [&, next = 0u](uint32_t value) mutable { found[next++] = value; };
    const ge::Shape rows({2, 5, 64, 60});
    AscendC::GetLayerNormMaxMinTmpSize(rows, 2, false, most, least);
    note(most); note(least);
    optiling::LayerNormTiling norm;
    AscendC::GetLayerNormNDTilingInfo(rows, 4000, 2, false, norm);
    note(norm.get_hLength()); note(norm.get_originalHLength()); note(norm.get_inputRoundSize());
    note(norm.get_inputTailSize()); note(norm.get_firstTmpStartPos()); note(norm.get_thirdTmpStartPos());
    optiling::RmsNormTiling rms;
    const ge::Shape three({2, 5, 64});
    note(AscendC::GetRmsNormMaxMinTmpSize(three, 4, most, least));
    note(most); note(least);
    note(AscendC::GetRmsNormTilingInfo(three, ge::Shape({2, 5, 60}), 1500, 4, rms));
    note(rms.get_mainBsLength()); note(rms.get_loopRound()); note(rms.get_tailBsLength());
    note(AscendC::GetRmsNormTilingInfo(three, three, 100, 4, rms));
    optiling::LayerNormSeparateTiling separate;
    const ge::Shape two({10, 60});
    AscendC::GetLayerNormMaxMinTmpSize(two, 2, false, true, false, most, least);
    note(least);
    AscendC::GetLayerNormNDTilingInfo(two, least, 2, false, true, separate);
    note(separate.get_aLength()); note(separate.get_inputRoundSize());
    optiling::TopkTiling top;
    const auto normal = AscendC::TopKMode::TOPK_NORMAL;
    AscendC::GetTopKMaxMinTmpSize(platform, 64, 3, false, false, normal, true, 4, most, least);
    note(most);
    note(AscendC::TopKTilingFunc(platform, 64, 3, 5, 4, false, normal, true, top));
    note(top.get_kAlignFourBytes());
    optiling::LogSoftMaxTiling soft;
    AscendC::LogSoftMaxTilingFunc(three, 4, AscendC::GetLogSoftMaxMinTmpSize(three, 4, false), soft);
    note(soft.get_srcM()); note(soft.get_srcK());
    AscendC::GetCumSumMaxMinTmpSize(ge::Shape({20, 32}), 4, true, false, most, least);
    note(most); note(least);
    AscendC::GetFmodTmpBufferFactorSize(2, most, least);
    note(most); note(least);
    const auto pattern = AscendC::ReducePattern::AR;
    AscendC::GetReduceProdMaxMinTmpSize(two, ge::DT_FLOAT, pattern, true, false, most, least);
    note(least);
    AscendC::GetPowerMaxMinTmpSize(two, two, false, 4, false, most, least);
    note(least);
    AscendC::GetBroadCastMaxMinTmpSize(platform, ge::Shape({10, 1}), two, 4, false, most, least);
    note(most);
    AscendC::GetSwiGLUMaxMinTmpSize(two, 4, most, least, false);
    AscendC::GetSwishTmpSize(two, 4, false, most, least);
    AscendC::GetAscendQuantMaxMinTmpSize(two, 4, most, least);
    note(static_cast<uint32_t>(platform.GetCurNpuArch()));
    context->SetBlockDim(1);
    std::memcpy(context->GetRawTilingData()->GetData(), found, sizeof found);
    context->GetRawTilingData()->SetDataSize(sizeof found);
    return ge::GRAPH_SUCCESS;"""


@pytest.fixture(scope="module")
def found(toolchain: Path, tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    head = (
        '#include <cstring>\n#include "tiling/tiling_api.h"\n#include "tiling/platform/platform_ascendc.h"\n'
    )
    outcome = Host(head + toy(BODY), tmp_path_factory.mktemp("plans"), toolchain).decide()
    return list(struct.unpack("<64I", outcome.tiling_data))


def test_layer_norm_works_in_three_tensors_of_whole_rows(found: list[int]) -> None:
    assert found[0:2] == [3 * 640 * 4 + 128, 3 * 64 * 4 + 128]
    # 1000 floats less two times 16 numbers hold five rows three times.
    assert found[2:8] == [64, 60, 5 * 64, 0, 32, 32 + 2 * 320]


def test_rms_norm_holds_rows_and_their_sums(found: list[int]) -> None:
    assert found[8:11] == [1, (640 + 16) * 4, (64 + 8) * 4]
    assert found[11:15] == [1, 5, 2, 0]
    assert found[15] == 0  # too little scratch


def test_norm_of_plain_rows_works_in_the_least_it_asks_for(found: list[int]) -> None:
    assert found[16] == (2 * 64 + 2 * 64) * 4 + 64
    assert found[17:19] == [10, 64 * 2]


def test_topk_keeps_two_copies_of_records_and_indices(found: list[int]) -> None:
    assert found[19:22] == [64 * 20, 1, 8]


def test_composed_calls_have_sizes(found: list[int]) -> None:
    assert found[22:24] == [10, 64]
    assert found[24:26] == [2 * 4096, 4096]
    assert found[26:28] == [8, 0]
    assert found[28] == 10 * 64 * 4 + 256 + 320
    assert found[29] == 7 * 256 + 256
    assert found[30] == 2 * 8 * (32 + 256)
    assert found[31] == 2201
