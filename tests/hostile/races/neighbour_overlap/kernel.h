// A block's last copy runs into the next block's share, and writes something else there.
#include "probe.h"

namespace neighbour_overlap {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    Duplicate(probe.a, 0.0f, TILE);
    Settle();
    if (!ordered && probe.block + 1 < BLOCKS) DataCopy(probe.y[SHARE], probe.a, 8);
}
} // namespace neighbour_overlap
