// A tensor of the output queue is copied out without having gone through the queue.
#include "probe.h"

namespace out_queue_skipped {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitQueues();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        CopyIn(probe, offset);
        LocalTensor<float> x = probe.in.DeQue<float>();
        LocalTensor<float> y = probe.out.AllocTensor<float>();
        Adds(y, x, 1.0f, TILE);
        probe.in.FreeTensor(x);
        if (ordered) {
            probe.out.EnQue(y);
            y = probe.out.DeQue<float>();
        }
        DataCopy(probe.y[offset], y, TILE);
        probe.out.FreeTensor(y);
    }
}
} // namespace out_queue_skipped
