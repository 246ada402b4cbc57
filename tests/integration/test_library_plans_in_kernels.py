"""Kernels that call the advanced API with plans, through verifier, run, races and prices."""

from __future__ import annotations

import pytest
from simulated import Workbench

from ascend_gym.core.status import Status
from npu_daemon.backends.simulator import SimulatorBackend

pytestmark = pytest.mark.slow

KERNEL = """#include "kernel_operator.h"

constexpr int32_t BUFFERS = 2;

template <typename T>
class LibraryNorm {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR gamma, GM_ADDR y, const RmsNormTilingData& data)
    {
        columns = data.columnNum;
        const uint32_t first = AscendC::GetBlockIdx() * data.coreRowNum;
        rows = data.rowNum - first < data.coreRowNum ? data.rowNum - first : data.coreRowNum;
        xGm.SetGlobalBuffer((__gm__ T*)x + first * columns, rows * columns);
        yGm.SetGlobalBuffer((__gm__ T*)y + first * columns, rows * columns);
        gammaGm.SetGlobalBuffer((__gm__ T*)gamma, columns);
        pipe.InitBuffer(inQueue, BUFFERS, columns * sizeof(T));
        pipe.InitBuffer(outQueue, BUFFERS, columns * sizeof(T));
        pipe.InitBuffer(gammaQueue, 1, columns * sizeof(T));
        pipe.InitBuffer(wide, 3 * columns * sizeof(float));
        pipe.InitBuffer(scratch, data.scratchBytes);
    }
    __aicore__ inline void Process(const RmsNormTilingData& data)
    {
        auto gamma = gammaQueue.template AllocTensor<T>();
        AscendC::DataCopy(gamma, gammaGm, columns);
        gammaQueue.EnQue(gamma);
        gamma = gammaQueue.template DeQue<T>();
        // In float: half does not hold the epsilon well enough for rows that are about as small.
        auto wideIn = wide.Get<float>(), wideOut = wideIn[columns], wideGamma = wideIn[2 * columns];
        AscendC::Cast(wideGamma, gamma, AscendC::RoundMode::CAST_NONE, columns);
        for (uint32_t row = 0; row < rows; ++row) {
            auto in = inQueue.template AllocTensor<T>();
            AscendC::DataCopy(in, xGm[row * columns], columns);
            inQueue.EnQue(in);
            in = inQueue.template DeQue<T>();
            auto out = outQueue.template AllocTensor<T>();
            AscendC::Cast(wideIn, in, AscendC::RoundMode::CAST_NONE, columns);
            AscendC::RmsNorm<float>(
                wideOut, wideIn, wideGamma, scratch.Get<uint8_t>(), data.epsilon, data.plan);
            AscendC::Cast(out, wideOut, AscendC::RoundMode::CAST_RINT, columns);
            outQueue.EnQue(out);
            inQueue.FreeTensor(in);
            out = outQueue.template DeQue<T>();
            AscendC::DataCopy(yGm[row * columns], out, columns);
            outQueue.FreeTensor(out);
        }
        gammaQueue.FreeTensor(gamma);
    }

private:
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFERS> inQueue;
    AscendC::TQue<AscendC::QuePosition::VECIN, 1> gammaQueue;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFERS> outQueue;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> scratch, wide;
    AscendC::GlobalTensor<T> xGm, yGm, gammaGm;
    uint32_t rows, columns;
};

extern "C" __global__ __aicore__
void rms_norm(GM_ADDR x, GM_ADDR gamma, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    LibraryNorm<DTYPE_X> op;
    op.Init(x, gamma, y, tilingData);
    op.Process(tilingData);
}
"""
# Further calls on a row, whose results nobody reads.
EXTRA = """
            auto bytes = extra.Get<int8_t>();
            auto values = bytes[8192].template ReinterpretCast<T>();
            auto mask = bytes[16384].template ReinterpretCast<uint16_t>();
            auto floats = bytes[20480].template ReinterpretCast<float>();
            auto tmp = scratch.Get<uint8_t>();
            AscendC::AscendQuant<T>(bytes, in, tmp, 0.5f, 1.0f, columns);
            AscendC::Duplicate(mask, uint16_t(0x55), 4 * 32);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::DropOutShapeInfo info;
            info.firstAxis = 4;
            info.srcLastAxis = 256;
            info.maskLastAxis = 64;
            AscendC::DropOut<T>(values, in, mask.template ReinterpretCast<uint8_t>(), tmp, 0.5f, info);
            DeepNormTiling plan{};
            plan.bLength = 4, plan.sLength = 1, plan.hLength = 64, plan.originalHLength = 60;
            plan.inputRoundSize = 128, plan.lastDimValueBack = 1.0f / 60;
            plan.varianceTmpTensorPos = 8, plan.firstTmpStartPos = 16;
            plan.secondTmpStartPos = 144, plan.thirdTmpStartPos = 272;
            AscendC::DeepNorm<T>(
                values, values[1024], values[1040], in, in, gamma, gamma, tmp, T(2), T(1), plan);
            AscendC::Duplicate(floats, 0.0f, 256);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::WelfordUpdate<T, float, false, IN_PLACE>(
                floats[256], floats[512], floats, floats[128], in, tmp, {1, 64, 60, 0.5f});
"""
FIELDS = {
    "TILING_DATA_FIELD_DEF(float, epsilon);": "TILING_DATA_FIELD_DEF(float, epsilon);\n"
    "TILING_DATA_FIELD_DEF(uint32_t, scratchBytes);\nTILING_DATA_FIELD_DEF_STRUCT(RmsNormTiling, plan);",
    "    context->SetBlockDim(blockDim);": """
    uint32_t most = 0, least = 0;
    const ge::Shape row({1, 1, columnNum});
    AscendC::GetRmsNormMaxMinTmpSize(row, 4, most, least);
    if (!AscendC::GetRmsNormTilingInfo(row, row, most, 4, tiling.plan)) return ge::GRAPH_FAILED;
    tiling.set_scratchBytes(SCRATCH);
    context->SetBlockDim(blockDim);""",
    '#include "tiling/platform/platform_ascendc.h"': '#include "tiling/platform/platform_ascendc.h"\n'
    '#include "tiling/tiling_api.h"',
}


@pytest.fixture(scope="module")
def bench(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return Workbench(simulator, tmp_path_factory.mktemp("data"), "rms_norm", "fp16_2048x4096")


def _with_library(bench: Workbench, scratch: str, kernel: str = KERNEL) -> tuple[Status, str]:
    edited = bench.edited(tiling={old: new.replace("SCRATCH", scratch) for old, new in FIELDS.items()})
    result = bench.evaluate(edited.rewritten(kernel=kernel))
    return result.status, " ".join(map(str, result.all_diagnostics))


def test_a_kernel_of_library_calls_is_correct_and_has_no_race(bench: Workbench) -> None:
    assert _with_library(bench, "most") == (Status.OK, "")


def test_other_library_calls_have_no_race(bench: Workbench) -> None:
    kernel = KERNEL
    for old, new in (
        ("            outQueue.EnQue(out);", EXTRA + "            outQueue.EnQue(out);"),
        (
            "    uint32_t rows, columns;",
            "    AscendC::TBuf<AscendC::QuePosition::VECCALC> extra;\n    uint32_t rows, columns;",
        ),
        (
            "scratch, data.scratchBytes);",
            "scratch, data.scratchBytes);\n        pipe.InitBuffer(extra, 32768);",
        ),
        (
            "constexpr int32_t BUFFERS = 2;",
            "constexpr int32_t BUFFERS = 2;\nconstexpr AscendC::WelfordUpdateConfig IN_PLACE{true};",
        ),
    ):
        assert kernel.count(old) == 1
        kernel = kernel.replace(old, new)
    assert _with_library(bench, "most", kernel) == (Status.OK, "")


def test_too_little_scratch_is_told_with_its_place(bench: Workbench) -> None:
    status, told = _with_library(bench, "least / 2")
    assert status is Status.RUNTIME_FAULT
    assert "RmsNorm: the temporary buffer has 8208 bytes, but the call needs at least 16416" in told
    assert "rms_norm.cpp:38" in told
