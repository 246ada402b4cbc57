// A copy reads from global memory what the scalar unit wrote back, and the two are not ordered.
#include "probe.h"

namespace stored_beside_copy_unordered {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    const auto mine = probe.scratch[probe.block * TILE];
    mine.SetValue(0, 1.0f);
    DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(mine);
    Order<HardEvent::S_MTE2, ordered>();
    DataCopy(probe.a, mine, 8);
}
} // namespace stored_beside_copy_unordered
