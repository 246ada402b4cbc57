// Two halves in turn, of which one is eight elements too long.
#include "probe.h"

namespace halves_meet {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    constexpr uint32_t HALF = TILE / 2;
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], HALF);
        Order<HardEvent::MTE2_V, true>();
        DataCopy(probe.a[HALF], probe.x[offset + HALF], HALF);
        Adds(probe.b, probe.a, 1.0f, ordered ? HALF : HALF + 8);
        Order<HardEvent::MTE2_V, true>();
        Adds(probe.b[HALF], probe.a[HALF], 1.0f, HALF);
        Order<HardEvent::V_MTE3, true>();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace halves_meet
