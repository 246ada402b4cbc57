// The queue of the input is drained, but the vector unit writes where the output's copy still reads.
#include "probe.h"

namespace waits_for_other_buffer {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitQueues(1);
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        CopyIn(probe, offset);
        LocalTensor<float> x = probe.in.DeQue<float>();
        Order<HardEvent::MTE3_V, ordered>();
        Adds(probe.b, x, 1.0f, TILE);
        probe.in.FreeTensor(x);
        Order<HardEvent::V_MTE3, true>();
        DataCopy(probe.y[offset], probe.b, TILE);
    }
}
} // namespace waits_for_other_buffer
