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
    AddToShare(probe, one);
}
} // namespace scalar_reads_vector
