// A value stays in the data cache of the core that stored it, though all cores have met.
#include "probe.h"

namespace cache_not_written_back {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    probe.scratch.SetValue(probe.block * 16, 1.0f);
    if (ordered) DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(probe.scratch[probe.block * 16]);
    SyncAll();
    probe.a.SetValue(0, probe.scratch.GetValue((probe.block + 1) % BLOCKS * 16));
}
} // namespace cache_not_written_back
