// A flag has the number of the one that a freed buffer holds until it is allocated again.
#include "probe.h"

namespace event_of_freed_buffer {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitQueues();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        LocalTensor<float> x = probe.in.AllocTensor<float>();
        DataCopy(x, probe.x[offset], TILE);
        probe.in.EnQue(x);
        x = probe.in.DeQue<float>();
        LocalTensor<float> y = probe.out.AllocTensor<float>();
        Adds(y, x, 1.0f, TILE);
        probe.out.EnQue(y);
        probe.in.FreeTensor(x);
        const int32_t id = ordered ? probe.pipe.FetchEventID(HardEvent::V_MTE2) : EVENT_ID0;
        SetFlag<HardEvent::V_MTE2>(id);
        WaitFlag<HardEvent::V_MTE2>(id);
        y = probe.out.DeQue<float>();
        DataCopy(probe.y[offset], y, TILE);
        probe.out.FreeTensor(y);
    }
}
} // namespace event_of_freed_buffer
