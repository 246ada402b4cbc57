// Device side of Target: y = 2 x + 1, tile by tile, as candidate.h does it.
#include "candidate.h"

class KernelTarget {
public:
    __aicore__ inline void Init(const Places& places)
    {
        this->places = places;
        const uint32_t first = places.coreLength * AscendC::GetBlockIdx();
        xGm.SetGlobalBuffer((__gm__ float*)places.x + first, places.coreLength);
        yGm.SetGlobalBuffer((__gm__ float*)places.y + first, places.coreLength);
        pipe.InitBuffer(inQueue, 2, places.tileLength * sizeof(float));
        pipe.InitBuffer(outQueue, 2, places.tileLength * sizeof(float));
        candidate.Begin(places);
    }

    __aicore__ inline void Process()
    {
        for (uint32_t offset = 0; offset < places.coreLength; offset += places.tileLength) {
            AscendC::LocalTensor<float> copied = inQueue.AllocTensor<float>();
            AscendC::DataCopy(copied, xGm[offset], places.tileLength);
            inQueue.EnQue(copied);
            AscendC::LocalTensor<float> x = inQueue.DeQue<float>();
            AscendC::LocalTensor<float> y = outQueue.AllocTensor<float>();
            candidate.Compute(y, x, offset, places.tileLength);
            outQueue.EnQue(y);
            inQueue.FreeTensor(x);
            AscendC::LocalTensor<float> done = outQueue.DeQue<float>();
            candidate.CopyOut(yGm, done, offset, places.tileLength);
            outQueue.FreeTensor(done);
        }
    }

private:
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, 2> inQueue;
    AscendC::TQue<AscendC::QuePosition::VECOUT, 2> outQueue;
    AscendC::GlobalTensor<float> xGm, yGm;
    Places places;
    Candidate candidate;
};

extern "C" __global__ __aicore__ void target(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelTarget op;
    op.Init({x, y, workspace, tilingData.coreLength, tilingData.tileLength});
    op.Process();
}
