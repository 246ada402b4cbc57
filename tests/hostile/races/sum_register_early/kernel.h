// A sum is read from its register after a flag that was set for the sum before it.
#include "probe.h"

namespace sum_register_early {
template <bool ordered>
__aicore__ inline float SumOf(Probe& probe)
{
    vcadd((__ubuf__ float*)probe.b.GetPhyAddr(), (__ubuf__ float*)probe.a.GetPhyAddr(), 1, 1, 1, 8, true);
    Order<HardEvent::V_S, ordered>();
    const int64_t bits = get_acc_val();
    return *(const float*)&bits;
}

template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    constexpr uint32_t LANES = 64;
    probe.InitBuffers();
    Duplicate(probe.a, 1.0f / LANES, LANES);
    Settle();
    set_mask_norm();
    set_vector_mask(0, ~0ull);
    SumOf<true>(probe);
    const float one = SumOf<ordered>(probe);
    Settle();
    ResetMask();
    AddToShare(probe, one);
}
} // namespace sum_register_early
