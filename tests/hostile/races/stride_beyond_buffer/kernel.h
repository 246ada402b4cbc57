// Repeats that lie too far apart run past the end of their buffer, into the next one.
#include "probe.h"

namespace stride_beyond_buffer {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        Settle();
        Adds(probe.b, probe.a, 1.0f, TILE);
        PipeBarrier<PIPE_V>();
        Adds(probe.a, probe.b, 2.0f, 64, 8, UnaryRepeatParams(1, 1, ordered ? 8 : 9, 8));
        Settle();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace stride_beyond_buffer
