// The vector unit waits, but only after it has used the tile.
#include "probe.h"

namespace wait_after_use {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
        if (ordered) WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
        Adds(probe.b, probe.a, 1.0f, TILE);
        if (!ordered) WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
        Order<HardEvent::V_MTE3, true>();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace wait_after_use
