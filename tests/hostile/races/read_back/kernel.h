// A block reads from global memory what its own copy may still be writing there.
#include "probe.h"

namespace read_back {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    const auto mine = probe.scratch[probe.block * SHARE];
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        Order<HardEvent::MTE2_MTE3, true>();
        DataCopy(mine[offset], probe.a, TILE);
        Order<HardEvent::MTE3_MTE2, ordered>();
        DataCopy(probe.b, mine[offset], TILE);
        Settle();
        Adds(probe.b, probe.b, 1.0f, TILE);
        Settle();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace read_back
