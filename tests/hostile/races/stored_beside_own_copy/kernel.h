// A core stores to a line whose other half its own copies fill afterwards.
#include "probe.h"

namespace stored_beside_own_copy {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    const auto mine = probe.scratch[probe.block * TILE];
    mine.SetValue(0, 1.0f);
    if (ordered) DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(mine);
    Settle();
    DataCopy(mine[8], probe.b, 8);
}
} // namespace stored_beside_own_copy
