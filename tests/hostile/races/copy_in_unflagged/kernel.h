// The vector unit reads a tile that a copy may still be writing.
#include "probe.h"

namespace copy_in_unflagged {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        Order<HardEvent::MTE2_V, ordered>();
        Adds(probe.b, probe.a, 1.0f, TILE);
        Order<HardEvent::V_MTE3, true>();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace copy_in_unflagged
