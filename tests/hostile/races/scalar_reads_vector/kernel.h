// The scalar unit reads a result that the vector unit may still be writing.
#include "probe.h"

namespace scalar_reads_vector {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    Duplicate(probe.a, 1.0f, TILE);
    Order<HardEvent::V_S, ordered>();
    const float one = probe.a.GetValue(0);
    Settle();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        Settle();
        Adds(probe.b, probe.a, one, TILE);
        Settle();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace scalar_reads_vector
