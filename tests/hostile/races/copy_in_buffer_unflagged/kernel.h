// The vector pipe copies within the unified buffer, and the copy out does not wait for it.
#include "probe.h"

namespace copy_in_buffer_unflagged {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        Settle();
        Adds(probe.a, probe.a, 1.0f, TILE);
        PipeBarrier<PIPE_V>();
        DataCopy(probe.b, probe.a, TILE);
        Order<HardEvent::V_MTE3, ordered>();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace copy_in_buffer_unflagged
