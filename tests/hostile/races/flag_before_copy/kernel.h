// A flag covers what was issued before it, and the copy comes after it.
#include "probe.h"

namespace flag_before_copy {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        if (!ordered) SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
        DataCopy(probe.a, probe.x[offset], TILE);
        if (ordered) SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
        WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
        Adds(probe.b, probe.a, 1.0f, TILE);
        Order<HardEvent::V_MTE3, true>();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace flag_before_copy
