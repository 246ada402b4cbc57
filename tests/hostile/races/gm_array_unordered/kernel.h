// Each block stores to its line of a static array in global memory, and the block before it reads that line after SyncAll: the store
// is still in a data cache.
#include "probe.h"

namespace gm_array_unordered {
constexpr uint32_t LINE = 16;
static volatile __gm__ float g_given[BLOCKS * LINE] = {0.0f};

template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    GlobalTensor<float> given;
    given.SetGlobalBuffer((__gm__ float*)g_given);
    g_given[probe.block * LINE] = 1.0f;
    if (ordered) DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(given[probe.block * LINE]);
    SyncAll();
    probe.a.SetValue(0, g_given[(probe.block + 1) % BLOCKS * LINE]);
}
} // namespace gm_array_unordered
