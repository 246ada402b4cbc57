// A copy reads from global memory what the core's own scalar stores have left in its data cache.
#include "probe.h"

namespace cache_not_seen_by_copy {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    const auto mine = probe.scratch[probe.block * TILE];
    for (uint32_t i = 0; i < 8; ++i) mine.SetValue(i, 1.0f);
    if (ordered) DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE>(mine);
    Order<HardEvent::S_MTE2, true>();
    DataCopy(probe.a, mine, 8);
}
} // namespace cache_not_seen_by_copy
