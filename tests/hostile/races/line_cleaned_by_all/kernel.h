// All cores store to one line and write it back at once, each over what the others wrote.
#include "probe.h"

namespace line_cleaned_by_all {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    const auto mine = probe.scratch[probe.block * (ordered ? 16 : 1)];
    mine.SetValue(0, 1.0f);
    DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(mine);
}
} // namespace line_cleaned_by_all
