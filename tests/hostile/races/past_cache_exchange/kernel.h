// Blocks pass a value through global memory past their data caches, and do not meet.
#include "probe.h"

namespace past_cache_exchange {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    __gm__ int32_t* shared = (__gm__ int32_t*)probe.scratch.GetPhyAddr();
    const int32_t one = 1;
    WriteGmByPassDCache(shared + probe.block, one);
    if (ordered) SyncAll();
    probe.a.SetValue(0, (float)ReadGmByPassDCache(shared + (probe.block + 1) % BLOCKS));
}
} // namespace past_cache_exchange
