// A block reads a line of which another block writes a part, after a read that does not touch that part.
#include "probe.h"

namespace line_shared {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    if (probe.block == 0) {
        probe.scratch.SetValue(8, 1.0f);
        DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(probe.scratch[8]);
    }
    if (ordered) SyncAll();
    if (probe.block == 1) {
        const float first = probe.scratch.GetValue(0);
        probe.a.SetValue(0, first + probe.scratch.GetValue(8));
    }
}
} // namespace line_shared
