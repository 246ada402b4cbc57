// A load of eight bytes that begins in one line of the data cache and ends in another, which is older than what a core has stored.
#include "probe.h"

namespace stale_across_lines {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    GlobalTensor<uint32_t> words;
    words.SetGlobalBuffer((__gm__ uint32_t*)probe.scratch.GetPhyAddr(), 32);
    volatile __gm__ uint64_t* across = (volatile __gm__ uint64_t*)words[15].GetPhyAddr();
    if (probe.block == 1) {
        (void)words.GetValue(16);
    }
    SyncAll();
    if (probe.block == 0) {
        words.SetValue(16, 7);
        DataCacheCleanAndInvalid<uint32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(words[16]);
    }
    SyncAll();
    probe.InitBuffers();
    if (probe.block == 1) {
        if (ordered) {
            DataCacheCleanAndInvalid<uint32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(words[16]);
        }
        if (*across >> 32 != 7) {
            return;
        }
    }
    PlainShare(probe);
}
} // namespace stale_across_lines
