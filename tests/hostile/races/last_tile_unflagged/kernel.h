// Every tile waits for its copy but the last one.
#include "probe.h"

namespace last_tile_unflagged {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        if (ordered || offset + TILE < SHARE) Order<HardEvent::MTE2_V, true>();
        Adds(probe.b, probe.a, 1.0f, TILE);
        Order<HardEvent::V_MTE3, true>();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace last_tile_unflagged
