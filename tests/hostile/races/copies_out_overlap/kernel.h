// Two copies write the same part of the output, with different values.
#include "probe.h"

namespace copies_out_overlap {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        Order<HardEvent::MTE2_V, true>();
        Adds(probe.b, probe.a, 1.0f, TILE);
        Order<HardEvent::V_MTE3, true>();
        DataCopy(probe.y[offset], probe.a, TILE);
        if (ordered) PipeBarrier<PIPE_MTE3>();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace copies_out_overlap
