// A copy reads what the scalar unit has only just stored.
#include "probe.h"

namespace scalar_store_copied {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    const float value = probe.b.GetValue(TILE - 1);
    probe.b.SetValue(TILE - 1, value);
    Order<HardEvent::S_MTE3, ordered>();
    DataCopy(probe.y[TILE], probe.b, TILE);
}
} // namespace scalar_store_copied
