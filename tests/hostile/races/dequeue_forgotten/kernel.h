// A queue orders only those who take the tensor out of it.
#include "probe.h"

namespace dequeue_forgotten {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitQueues();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        LocalTensor<float> x = probe.in.AllocTensor<float>();
        DataCopy(x, probe.x[offset], TILE);
        probe.in.EnQue(x);
        LocalTensor<float> y = probe.out.AllocTensor<float>();
        if (ordered) x = probe.in.DeQue<float>();
        Adds(y, x, 1.0f, TILE);
        if (!ordered) x = probe.in.DeQue<float>();
        probe.in.FreeTensor(x);
        probe.out.EnQue(y);
        CopyOut(probe, offset);
    }
}
} // namespace dequeue_forgotten
