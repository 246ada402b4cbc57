// Device side of Power: y = x1 * x2^4, with one buffer a queue for key 1 and two for key 2.
#include "kernel_operator.h"

template <int32_t BUFFERS>
class KernelPower {
public:
    __aicore__ inline void Init(GM_ADDR x1, GM_ADDR x2, GM_ADDR y, const PowerTilingData& tiling)
    {
        const uint64_t begin = tiling.coreLength * AscendC::GetBlockIdx();
        const uint64_t rest = begin < tiling.totalLength ? tiling.totalLength - begin : 0;
        length = rest < tiling.coreLength ? rest : tiling.coreLength;
        tileLength = tiling.tileLength;
        x1Gm.SetGlobalBuffer((__gm__ float*)x1 + begin, length);
        x2Gm.SetGlobalBuffer((__gm__ float*)x2 + begin, length);
        yGm.SetGlobalBuffer((__gm__ float*)y + begin, length);
        pipe.InitBuffer(inQueueX1, BUFFERS, tileLength * sizeof(float));
        pipe.InitBuffer(inQueueX2, BUFFERS, tileLength * sizeof(float));
        pipe.InitBuffer(outQueueY, BUFFERS, tileLength * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        for (uint64_t offset = 0; offset < length; offset += tileLength) {
            const uint32_t count = length - offset < tileLength ? length - offset : tileLength;
            CopyIn(offset, count);
            Compute(count);
            CopyOut(offset, count);
        }
    }

private:
    __aicore__ inline void CopyIn(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<float> x1 = inQueueX1.template AllocTensor<float>();
        AscendC::LocalTensor<float> x2 = inQueueX2.template AllocTensor<float>();
        AscendC::DataCopy(x1, x1Gm[offset], count);
        AscendC::DataCopy(x2, x2Gm[offset], count);
        inQueueX1.EnQue(x1);
        inQueueX2.EnQue(x2);
    }

    __aicore__ inline void Compute(uint32_t count)
    {
        AscendC::LocalTensor<float> x1 = inQueueX1.template DeQue<float>();
        AscendC::LocalTensor<float> x2 = inQueueX2.template DeQue<float>();
        AscendC::LocalTensor<float> y = outQueueY.template AllocTensor<float>();
        AscendC::Mul(y, x1, x2, count);
        AscendC::Mul(y, y, x2, count);
        AscendC::Mul(y, y, x2, count);
        AscendC::Mul(y, y, x2, count);
        outQueueY.EnQue(y);
        inQueueX1.FreeTensor(x1);
        inQueueX2.FreeTensor(x2);
    }

    __aicore__ inline void CopyOut(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<float> y = outQueueY.template DeQue<float>();
        AscendC::DataCopy(yGm[offset], y, count);
        outQueueY.FreeTensor(y);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFERS> inQueueX1, inQueueX2;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFERS> outQueueY;
    AscendC::GlobalTensor<float> x1Gm, x2Gm, yGm;
    uint64_t length;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void power(GM_ADDR x1, GM_ADDR x2, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    if (TILING_KEY_IS(1)) {
        KernelPower<1> op;
        op.Init(x1, x2, y, tilingData);
        op.Process();
    } else if (TILING_KEY_IS(2)) {
        KernelPower<2> op;
        op.Init(x1, x2, y, tilingData);
        op.Process();
    }
}
