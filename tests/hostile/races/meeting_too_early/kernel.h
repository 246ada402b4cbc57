// The blocks meet before the data that they exchange is written.
#include "probe.h"

namespace meeting_too_early {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    if (!ordered) SyncAll();
    DataCopy(probe.scratch[probe.block * TILE], probe.b, TILE);
    if (ordered) SyncAll();
    DataCopy(probe.a, probe.scratch[(probe.block + 1) % BLOCKS * TILE], TILE);
}
} // namespace meeting_too_early
