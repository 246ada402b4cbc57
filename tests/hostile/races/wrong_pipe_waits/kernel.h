// The flag makes a copy into the buffers wait, but it is the copy out that needs the data.
#include "probe.h"

namespace wrong_pipe_waits {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        Order<HardEvent::MTE2_V, true>();
        Adds(probe.b, probe.a, 1.0f, TILE);
        Order<ordered ? HardEvent::V_MTE3 : HardEvent::V_MTE2, true>();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace wrong_pipe_waits
