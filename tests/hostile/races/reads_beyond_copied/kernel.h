// Eight elements more are computed and written than were copied in.
#include "probe.h"

namespace reads_beyond_copied {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], ordered ? TILE : TILE - 8);
        Settle();
        Adds(probe.b, probe.a, 1.0f, TILE);
        Settle();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}
} // namespace reads_beyond_copied
