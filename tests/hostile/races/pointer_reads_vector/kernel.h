// A raw pointer reads a result that the vector unit may still be writing.
#include "probe.h"

namespace pointer_reads_vector {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    Adds(probe.a, probe.b, 1.0f, TILE);
    Order<HardEvent::V_S, ordered>();
    const float value = ((__ubuf__ float*)probe.a.GetPhyAddr())[9];
    Settle();
    probe.b.SetValue(0, value);
}
} // namespace pointer_reads_vector
