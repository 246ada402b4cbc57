// Two blocks write the same tile of the output with values of their own.
#include "probe.h"

namespace region_shared {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    Settle();
    Duplicate(probe.a, (float)(int32_t)probe.block, TILE);
    Settle();
    DataCopy(probe.scratch[(ordered ? probe.block : probe.block / 2) * TILE], probe.a, TILE);
}
} // namespace region_shared
