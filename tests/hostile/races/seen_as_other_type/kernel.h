// The result is written through a view of other type, from an offset on, and copied out at once.
#include "probe.h"

namespace seen_as_other_type {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    const auto half_of_b = probe.b[TILE / 2].ReinterpretCast<int32_t>();
    Duplicate(half_of_b[64], (int32_t)0, 64);
    Order<HardEvent::V_MTE3, ordered>();
    DataCopy(probe.scratch[probe.block * TILE], probe.b[TILE / 2], TILE / 2);
}
} // namespace seen_as_other_type
