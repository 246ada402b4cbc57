// A copy reads what a raw pointer has only just stored.
#include "probe.h"

namespace pointer_store_copied {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    Settle();
    ((__ubuf__ float*)probe.a.GetPhyAddr())[1] = 2.0f;
    Order<HardEvent::S_MTE3, ordered>();
    DataCopy(probe.scratch[probe.block * TILE], probe.a, TILE);
}
} // namespace pointer_store_copied
