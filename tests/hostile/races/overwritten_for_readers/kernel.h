// A block overwrites for the next round what other blocks may still be reading of this one.
#include "probe.h"

namespace overwritten_for_readers {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    DataCopy(probe.scratch[probe.block * TILE], probe.b, TILE);
    SyncAll();
    DataCopy(probe.a, probe.scratch[(probe.block + 1) % BLOCKS * TILE], TILE);
    Settle();
    if (ordered) SyncAll();
    DataCopy(probe.scratch[probe.block * TILE], probe.a, TILE);
}
} // namespace overwritten_for_readers
