// A copy whose length is no multiple of 32 bytes leaves its last elements out.
#include "probe.h"

namespace copy_of_odd_length {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        Settle();
        Adds(probe.b, probe.a, 1.0f, TILE);
        Settle();
        DataCopy(probe.y[offset], probe.b, ordered ? TILE : TILE - 4);
        Settle();
    }
}
} // namespace copy_of_odd_length
