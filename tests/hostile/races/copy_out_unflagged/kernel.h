// A copy reads a result that the vector unit may still be writing.
#include "probe.h"

namespace copy_out_unflagged {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        Order<HardEvent::MTE2_V, true>();
        Adds(probe.b, probe.a, 1.0f, TILE);
        Order<HardEvent::V_MTE3, ordered>();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace copy_out_unflagged
