// A core loads a line for its own value while another core writes beside it, and then reads that, too.
#include "probe.h"

namespace stale_neighbour {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    DataCopy(probe.scratch[probe.block * 8], probe.b, 8);
    Settle();
    const float own = probe.scratch.GetValue(probe.block * 8);
    SyncAll();
    if (ordered) DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE>(probe.scratch);
    probe.a.SetValue(0, own + probe.scratch.GetValue((probe.block ^ 1) * 8));
}
} // namespace stale_neighbour
