// A block reads what another block writes in the same stretch.
#include "probe.h"

namespace neighbour_read {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    DataCopy(probe.scratch[probe.block * TILE], probe.b, TILE);
    Settle();
    if (ordered) SyncAll();
    DataCopy(probe.a, probe.scratch[(probe.block + 3) % BLOCKS * TILE], TILE);
}
} // namespace neighbour_read
