// A copy overwrites in global memory what an earlier copy may still be reading.
#include "probe.h"

namespace overwritten_while_read {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    const auto mine = probe.scratch[probe.block * TILE];
    DataCopy(mine, probe.b, TILE);
    Settle();
    Adds(probe.b, probe.b, 1.0f, TILE);
    Settle();
    DataCopy(probe.a, mine, TILE);
    Order<HardEvent::MTE2_MTE3, ordered>();
    DataCopy(mine, probe.b, TILE);
}
} // namespace overwritten_while_read
