// A tile that was only just copied in is copied out again: the copies are on two pipes.
#include "probe.h"

namespace copied_through {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.y[offset], TILE);
        Order<HardEvent::MTE2_MTE3, ordered>();
        DataCopy(probe.y[offset], probe.a, TILE);
        Settle();
    }
}
} // namespace copied_through
