// Likewise by a raw pointer, which the compiler does not order.
#include "probe.h"

namespace pointer_stored_for_vector {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        __ubuf__ float* ones = (__ubuf__ float*)probe.b.GetPhyAddr();
        for (uint32_t i = 0; i < 8; ++i) ones[i] = 1.0f;
        Order<HardEvent::S_V, ordered>();
        DataCopy(probe.a, probe.x[offset], TILE);
        Order<HardEvent::MTE2_V, true>();
        Add(probe.a, probe.a, probe.b, 64, TILE / 64, BinaryRepeatParams(1, 1, 0, 8, 8, 0));
        Order<HardEvent::V_MTE3, true>();
        DataCopy(probe.y[offset], probe.a, TILE);
        Settle();
    }
}
} // namespace pointer_stored_for_vector
