// A line of the data cache is to be written back by a tensor that lies nowhere.
#include "probe.h"

namespace cleaned_nowhere {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    GlobalTensor<uint32_t> words, nowhere;
    words.SetGlobalBuffer((__gm__ uint32_t*)probe.scratch.GetPhyAddr(), 32);
    if (probe.block == 0) {
        words.SetValue(0, 7);
        const GlobalTensor<uint32_t>& cleaned = ordered ? words : nowhere;
        DataCacheCleanAndInvalid<uint32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(cleaned);
    }
    SyncAll();
    probe.InitBuffers();
    if (probe.block == 1 && words.GetValue(0) != 7) {
        return;
    }
    PlainShare(probe);
}
} // namespace cleaned_nowhere
