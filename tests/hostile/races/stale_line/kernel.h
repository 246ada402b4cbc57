// A core reads a line once more after another core has written to it, and still has it in its data cache.
#include "probe.h"

namespace stale_line {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    const uint64_t next = (probe.block + 1) % BLOCKS * TILE;
    const float before = probe.scratch.GetValue(next);
    SyncAll();
    DataCopy(probe.scratch[probe.block * TILE], probe.b, TILE);
    SyncAll();
    if (ordered) DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(probe.scratch[next]);
    probe.a.SetValue(0, before + probe.scratch.GetValue(next));
}
} // namespace stale_line
