// Device side of Scaled: y = factor * x on one core, tile by tile.
#include "kernel_operator.h"

extern "C" __global__ __aicore__ void scaled(GM_ADDR x, GM_ADDR factor, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(plan, tiling);
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, 1> inQueue;
    AscendC::TQue<AscendC::QuePosition::VECOUT, 1> outQueue;
    pipe.InitBuffer(inQueue, 2, plan.tileLength * sizeof(float));
    pipe.InitBuffer(outQueue, 2, plan.tileLength * sizeof(float));
    AscendC::GlobalTensor<float> from, to;
    from.SetGlobalBuffer((__gm__ float*)x, plan.length);
    to.SetGlobalBuffer((__gm__ float*)y, plan.length);
    for (uint32_t offset = 0; offset < plan.length; offset += plan.tileLength) {
        AscendC::LocalTensor<float> tile = inQueue.AllocTensor<float>();
        AscendC::DataCopy(tile, from[offset], plan.tileLength);
        inQueue.EnQue(tile);
        tile = inQueue.DeQue<float>();
        AscendC::LocalTensor<float> result = outQueue.AllocTensor<float>();
        AscendC::Muls(result, tile, plan.factor, plan.tileLength);
        outQueue.EnQue(result);
        inQueue.FreeTensor(tile);
        result = outQueue.DeQue<float>();
        AscendC::DataCopy(to[offset], result, plan.tileLength);
        outQueue.FreeTensor(result);
    }
}
