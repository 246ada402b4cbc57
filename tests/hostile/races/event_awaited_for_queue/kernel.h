// The kernel waits for the flag of a buffer itself, and DeQue then for ever.
#include "probe.h"

namespace event_awaited_for_queue {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitQueues();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        LocalTensor<float> x = probe.in.AllocTensor<float>();
        DataCopy(x, probe.x[offset], TILE);
        probe.in.EnQue(x);
        if (!ordered) WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
        x = probe.in.DeQue<float>();
        LocalTensor<float> y = probe.out.AllocTensor<float>();
        Adds(y, x, 1.0f, TILE);
        probe.out.EnQue(y);
        probe.in.FreeTensor(x);
        y = probe.out.DeQue<float>();
        DataCopy(probe.y[offset], y, TILE);
        probe.out.FreeTensor(y);
    }
}
} // namespace event_awaited_for_queue
