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
        AddBlock(probe, offset);
    }
}
} // namespace pointer_stored_for_vector
