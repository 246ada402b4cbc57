// A mask of twice the elements that a repeat has: half of them are left out.
#include "probe.h"

namespace mask_beyond_repeat {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        Settle();
        const UnaryRepeatParams strides(1, 1, ordered ? 8 : 16, ordered ? 8 : 16);
        Adds(probe.b, probe.a, 1.0f, ordered ? 64 : 128, ordered ? 8 : 4, strides);
        Settle();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace mask_beyond_repeat
