// Device side of Shift: y = x + 1; a tile is computed in chunks of at most CHUNK_LENGTH elements.
#include "kernel_operator.h"

constexpr uint32_t CHUNK_LENGTH = 64;

class KernelShift {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, uint32_t coreLength, uint32_t tileLength)
    {
        this->coreLength = coreLength;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ float*)x + coreLength * AscendC::GetBlockIdx(), coreLength);
        yGm.SetGlobalBuffer((__gm__ float*)y + coreLength * AscendC::GetBlockIdx(), coreLength);
        pipe.InitBuffer(inQueue, 1, tileLength * sizeof(float));
        pipe.InitBuffer(outQueue, 1, tileLength * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t offset = 0; offset < coreLength; offset += tileLength) {
            AscendC::LocalTensor<float> x = inQueue.AllocTensor<float>();
            AscendC::DataCopy(x, xGm[offset], tileLength);
            inQueue.EnQue(x);
            Compute();
            AscendC::LocalTensor<float> y = outQueue.DeQue<float>();
            AscendC::DataCopy(yGm[offset], y, tileLength);
            outQueue.FreeTensor(y);
        }
    }

private:
    __aicore__ inline void Compute()
    {
        AscendC::LocalTensor<float> x = inQueue.DeQue<float>();
        AscendC::LocalTensor<float> y = outQueue.AllocTensor<float>();
        for (uint32_t first = 0; first < tileLength; first += CHUNK_LENGTH) {
            const uint32_t rest = tileLength - first;
            AscendC::Adds(y[first], x[first], 1.0f, rest < CHUNK_LENGTH ? rest : CHUNK_LENGTH);
        }
        outQueue.EnQue(y);
        inQueue.FreeTensor(x);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, 1> inQueue;
    AscendC::TQue<AscendC::QuePosition::VECOUT, 1> outQueue;
    AscendC::GlobalTensor<float> xGm, yGm;
    uint32_t coreLength;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void shift(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelShift op;
    op.Init(x, y, tilingData.coreLength, tilingData.tileLength);
    op.Process();
}
