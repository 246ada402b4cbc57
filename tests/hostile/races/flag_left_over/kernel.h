// A flag between cores is set once too often, so that the next wait for it ends too early.
#include "probe.h"

namespace flag_left_over {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    CrossCoreSetFlag<0, PIPE_MTE3>(1);
    if (!ordered) CrossCoreSetFlag<0, PIPE_MTE3>(1);
    CrossCoreWaitFlag(1);
    DataCopy(probe.scratch[probe.block * TILE], probe.b, TILE);
    CrossCoreSetFlag<0, PIPE_MTE3>(1);
    CrossCoreWaitFlag(1);
    DataCopy(probe.a, probe.scratch[(probe.block + 1) % BLOCKS * TILE], TILE);
    if (!ordered) CrossCoreWaitFlag(1);
}
} // namespace flag_left_over
