// The vector unit overwrites a result that a copy may still be reading.
#include "probe.h"

namespace result_overwritten {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        Order<HardEvent::MTE2_V, true>();
        Adds(probe.b, probe.a, 1.0f, TILE);
        Order<HardEvent::V_MTE2, true>();
        Order<HardEvent::V_MTE3, true>();
        DataCopy(probe.y[offset], probe.b, TILE);
        Order<HardEvent::MTE3_V, ordered>();
        PipeBarrier<PIPE_V>();
    }
}
} // namespace result_overwritten
