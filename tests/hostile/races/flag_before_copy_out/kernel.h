// The flag for the other cores is set before the copy that they wait for is issued.
#include "probe.h"

namespace flag_before_copy_out {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    if (!ordered) CrossCoreSetFlag<0, PIPE_MTE3>(2);
    DataCopy(probe.scratch[probe.block * TILE], probe.b, TILE);
    if (ordered) CrossCoreSetFlag<0, PIPE_MTE3>(2);
    CrossCoreWaitFlag(2);
    DataCopy(probe.a, probe.scratch[(probe.block + 1) % BLOCKS * TILE], TILE);
}
} // namespace flag_before_copy_out
