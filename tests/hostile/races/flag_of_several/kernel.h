// Every block stores to one word of global memory, each a value of its own; that all store the same one harms nobody.
#include "probe.h"

namespace flag_of_several {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    const auto flag = probe.scratch[0];
    flag.SetValue(0, ordered ? 1.0f : 1.0f + probe.block);
    DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(flag);
}
} // namespace flag_of_several
