// A flag between cores is set for the next kernel to stumble over.
#include "probe.h"

namespace flag_never_awaited {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    CrossCoreSetFlag<0, PIPE_MTE3>(3);
    if (ordered) CrossCoreWaitFlag(3);
}
} // namespace flag_never_awaited
