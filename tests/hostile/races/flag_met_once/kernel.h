// A second exchange reuses the flag of the first one and forgets to set it.
#include "probe.h"

namespace flag_met_once {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    CrossCoreSetFlag<0, PIPE_MTE3>(0);
    CrossCoreWaitFlag(0);
    DataCopy(probe.scratch[probe.block * TILE], probe.b, TILE);
    if (ordered) {
        CrossCoreSetFlag<0, PIPE_MTE3>(0);
        CrossCoreWaitFlag(0);
    }
    DataCopy(probe.a, probe.scratch[(probe.block + 2) % BLOCKS * TILE], TILE);
}
} // namespace flag_met_once
