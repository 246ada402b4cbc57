// A barrier of the vector pipe does not make it wait for a copy.
#include "probe.h"

namespace barrier_of_one_pipe {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        PipeBarrier<ordered ? PIPE_ALL : PIPE_V>();
        Adds(probe.b, probe.a, 1.0f, TILE);
        Order<HardEvent::V_MTE3, true>();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace barrier_of_one_pipe
