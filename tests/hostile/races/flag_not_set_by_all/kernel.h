// One core sets a flag for a meeting that never takes place.
#include "probe.h"

namespace flag_not_set_by_all {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    if (ordered || probe.block == 1) CrossCoreSetFlag<0, PIPE_MTE3>(3);
    if (ordered) CrossCoreWaitFlag(3);
}
} // namespace flag_not_set_by_all
