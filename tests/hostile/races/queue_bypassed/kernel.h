// The result goes into a buffer beside the queue whose tensor is enqueued.
#include "probe.h"

namespace queue_bypassed {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitQueues(2);
    TBuf<TPosition::VECCALC> beside;
    probe.pipe.InitBuffer(beside, TILE * sizeof(float));
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        CopyIn(probe, offset);
        LocalTensor<float> x = probe.in.DeQue<float>();
        LocalTensor<float> y = probe.out.AllocTensor<float>();
        LocalTensor<float> sum = ordered ? y : beside.Get<float>();
        Adds(sum, x, 1.0f, TILE);
        probe.in.FreeTensor(x);
        probe.out.EnQue(y);
        y = probe.out.DeQue<float>();
        DataCopy(probe.y[offset], ordered ? y : sum, TILE);
        probe.out.FreeTensor(y);
    }
}
} // namespace queue_bypassed
