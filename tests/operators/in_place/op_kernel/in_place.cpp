// Device side of InPlace: y = exp(x), computed in the buffers of the only queue and copied out of them.
#include "kernel_operator.h"

class KernelInPlace {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, uint32_t coreLength, uint32_t tileLength)
    {
        this->coreLength = coreLength;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ float*)x + coreLength * AscendC::GetBlockIdx(), coreLength);
        yGm.SetGlobalBuffer((__gm__ float*)y + coreLength * AscendC::GetBlockIdx(), coreLength);
        pipe.InitBuffer(queue, 2, tileLength * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t offset = 0; offset < coreLength; offset += tileLength) {
            AscendC::LocalTensor<float> x = queue.AllocTensor<float>();
            AscendC::DataCopy(x, xGm[offset], tileLength);
            queue.EnQue(x);
            Compute(offset);
        }
    }

private:
    __aicore__ inline void Compute(uint32_t offset)
    {
        AscendC::LocalTensor<float> x = queue.DeQue<float>();
        AscendC::Exp(x, x, tileLength);
        const event_t computed = static_cast<event_t>(GetTPipePtr()->FetchEventID(AscendC::HardEvent::V_MTE3));
        AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(computed);
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(computed);
        AscendC::DataCopy(yGm[offset], x, tileLength);
        const event_t copied = static_cast<event_t>(GetTPipePtr()->FetchEventID(AscendC::HardEvent::MTE3_MTE2));
        AscendC::SetFlag<AscendC::HardEvent::MTE3_MTE2>(copied);
        AscendC::WaitFlag<AscendC::HardEvent::MTE3_MTE2>(copied);
        queue.FreeTensor(x);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, 2> queue;
    AscendC::GlobalTensor<float> xGm, yGm;
    uint32_t coreLength;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void in_place(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelInPlace op;
    op.Init(x, y, tilingData.coreLength, tilingData.tileLength);
    op.Process();
}
