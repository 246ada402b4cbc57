// A core reads what its own copy has written, but its data cache still has what was there before.
#include "probe.h"

namespace stale_after_own_copy {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    const auto mine = probe.scratch[probe.block * TILE];
    const float before = mine.GetValue(2);
    DataCopy(mine, probe.b, TILE);
    Order<HardEvent::MTE3_S, true>();
    if (ordered) DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE>(mine);
    probe.a.SetValue(0, before + mine.GetValue(2));
}
} // namespace stale_after_own_copy
