// A vector instruction reads what the scalar unit may still be storing.
#include "probe.h"

namespace value_stored_for_vector {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        for (uint32_t i = 0; i < 8; ++i) probe.b.SetValue(i, 1.0f);
        Order<HardEvent::S_V, ordered>();
        AddBlock(probe, offset);
    }
}
} // namespace value_stored_for_vector
