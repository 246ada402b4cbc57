// Two vector instructions write the same bytes: which one comes last?
#include "probe.h"

namespace vector_overwrite {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        Order<HardEvent::MTE2_V, true>();
        Duplicate(probe.b, 0.0f, TILE);
        if (ordered) PipeBarrier<PIPE_V>();
        Adds(probe.b, probe.a, 1.0f, TILE);
        Order<HardEvent::V_MTE3, true>();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace vector_overwrite
