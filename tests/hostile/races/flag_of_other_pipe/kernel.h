// All cores meet, but the flag is set by the vector pipe: the copy out may still be under way.
#include "probe.h"

namespace flag_of_other_pipe {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    DataCopy(probe.scratch[probe.block * TILE], probe.b, TILE);
    CrossCoreSetFlag<0, ordered ? PIPE_MTE3 : PIPE_V>(5);
    CrossCoreWaitFlag(5);
    DataCopy(probe.a, probe.scratch[(probe.block + 3) % BLOCKS * TILE], TILE);
}
} // namespace flag_of_other_pipe
