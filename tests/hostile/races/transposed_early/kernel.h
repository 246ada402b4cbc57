// Rows that lie apart are transposed, and copied out while the vector unit may still write them.
#include "probe.h"

namespace transposed_early {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    uint64_t to[16], from[16];
    for (uint32_t i = 0; i < 16; ++i) {
        to[i] = (uint64_t)probe.b[i * 16].GetPhyAddr();
        from[i] = (uint64_t)probe.a[i * 8].GetPhyAddr();
    }
    TransDataTo5HD<float>(to, from, TransDataTo5HDParams(false, false, 1, 0, 0));
    Order<HardEvent::V_MTE3, ordered>();
    DataCopy(probe.scratch[probe.block * TILE], probe.b, TILE);
}
} // namespace transposed_early
