// The scalar unit overwrites what the vector unit may still be reading.
#include "probe.h"

namespace scalar_store_over_read {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    Adds(probe.a, probe.b, 1.0f, TILE);
    Order<HardEvent::V_S, ordered>();
    probe.b.SetValue(7, 0.0f);
}
} // namespace scalar_store_over_read
