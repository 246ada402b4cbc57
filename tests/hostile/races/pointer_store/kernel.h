// The compiler inserts no synchronisation for accesses by a raw pointer.
#include "probe.h"

namespace pointer_store {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    DataCopy(probe.a, probe.x, TILE);
    Order<HardEvent::MTE2_S, ordered>();
    ((__ubuf__ float*)probe.a.GetPhyAddr())[5] = 0.0f;
}
} // namespace pointer_store
