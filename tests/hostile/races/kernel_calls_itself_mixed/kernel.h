// Blocks of a kernel that also has cube cores, which do nothing, exchange tiles and do not meet.
#include "probe.h"

namespace kernel_calls_itself_mixed {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    if ASCEND_IS_AIC return;
    probe.InitBuffers();
    PlainShare(probe);
    DataCopy(probe.scratch[probe.block * TILE], probe.b, TILE);
    Settle();
    if (ordered) SyncAll();
    DataCopy(probe.a, probe.scratch[(probe.block + 1) % BLOCKS * TILE], TILE);
}
} // namespace kernel_calls_itself_mixed
