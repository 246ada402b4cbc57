// A buffer is filled again while the copy out of it may still be under way.
#include "probe.h"

namespace refilled_through {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.y[offset], TILE);
        Order<HardEvent::MTE2_MTE3, true>();
        DataCopy(probe.scratch[probe.block * SHARE + offset], probe.a, TILE);
        Order<HardEvent::MTE3_MTE2, ordered>();
    }
}
} // namespace refilled_through
