// A flag that is set all the while has the number that the queue takes.
#include "probe.h"

namespace event_set_across_queue {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    const int32_t id = ordered ? probe.pipe.AllocEventID<HardEvent::MTE2_V>() : EVENT_ID0;
    SetFlag<HardEvent::MTE2_V>(id);
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
        y = probe.out.DeQue<float>();
        DataCopy(probe.y[offset], y, TILE);
        probe.out.FreeTensor(y);
    }
    WaitFlag<HardEvent::MTE2_V>(id);
    if (ordered) probe.pipe.ReleaseEventID<HardEvent::MTE2_V>(id);
}
} // namespace event_set_across_queue
