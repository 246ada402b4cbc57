// Of two copies that make a tile the flag covers the first only.
#include "probe.h"

namespace half_covered {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE / 2);
        if (!ordered) SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
        DataCopy(probe.a[TILE / 2], probe.x[offset + TILE / 2], TILE / 2);
        if (ordered) SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
        WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
        Adds(probe.b, probe.a, 1.0f, TILE);
        Order<HardEvent::V_MTE3, true>();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace half_covered
