// The line is written back from the middle on, and what is needed lies before that.
#include "probe.h"

namespace cache_cleaned_in_part {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    const auto mine = probe.scratch[probe.block * 16];
    mine.SetValue(0, 1.0f);
    DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(mine[ordered ? 0 : 8]);
    SyncAll();
    DataCopy(probe.a, probe.scratch[(probe.block + 1) % BLOCKS * 16], 8);
}
} // namespace cache_cleaned_in_part
