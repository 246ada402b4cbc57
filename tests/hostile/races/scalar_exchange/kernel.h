// Blocks pass a value through global memory with the scalar unit, and do not meet.
#include "probe.h"

namespace scalar_exchange {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    probe.scratch.SetValue(probe.block * 16, 1.0f);
    DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(probe.scratch[probe.block * 16]);
    if (ordered) SyncAll();
    probe.a.SetValue(0, probe.scratch.GetValue((probe.block + 1) % BLOCKS * 16));
}
} // namespace scalar_exchange
