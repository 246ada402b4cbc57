// A buffer given back before its last use may be filled during it.
#include "probe.h"

namespace freed_too_early {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitQueues();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        CopyIn(probe, offset);
        LocalTensor<float> x = probe.in.DeQue<float>();
        if (!ordered) probe.in.FreeTensor(x);
        LocalTensor<float> y = probe.out.AllocTensor<float>();
        Adds(y, x, 1.0f, TILE);
        if (ordered) probe.in.FreeTensor(x);
        probe.out.EnQue(y);
        CopyOut(probe, offset);
    }
}
} // namespace freed_too_early
