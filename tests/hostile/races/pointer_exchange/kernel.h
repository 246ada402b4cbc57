// Blocks pass a value through global memory by raw pointers, and do not meet.
#include "probe.h"

namespace pointer_exchange {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    __gm__ float* shared = (__gm__ float*)probe.scratch.GetPhyAddr();
    shared[probe.block * 16] = 1.0f;
    DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(probe.scratch[probe.block * 16]);
    if (ordered) SyncAll();
    probe.a.SetValue(0, shared[(probe.block + 1) % BLOCKS * 16]);
}
} // namespace pointer_exchange
