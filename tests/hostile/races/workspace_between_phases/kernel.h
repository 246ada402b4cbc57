// The second phase writes its partial sums over those of the first, which others may still be reading.
#include "probe.h"

namespace workspace_between_phases {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    const auto mine = probe.scratch[probe.block * TILE];
    DataCopy(mine, probe.b, TILE);
    Settle();
    SyncAll();
    DataCopy(probe.a, probe.scratch[(probe.block + 1) % BLOCKS * TILE], TILE);
    Settle();
    if (ordered) SyncAll();
    Adds(probe.a, probe.a, 1.0f, TILE);
    Settle();
    DataCopy(mine, probe.a, TILE);
}
} // namespace workspace_between_phases
