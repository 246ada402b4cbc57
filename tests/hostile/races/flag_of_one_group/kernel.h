// A flag for the vector cores of a group, which is this one alone, where all cores would have to meet.
#include "probe.h"

namespace flag_of_one_group {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    DataCopy(probe.scratch[probe.block * TILE], probe.b, TILE);
    Settle();
    if (ordered) {
        CrossCoreSetFlag<0, PIPE_MTE3>(0);
    } else {
        CrossCoreSetFlag<1, PIPE_MTE3>(0);
    }
    CrossCoreWaitFlag(0);
    DataCopy(probe.a, probe.scratch[(probe.block + 3) % BLOCKS * TILE], TILE);
}
} // namespace flag_of_one_group
