// A flag between cores has the number that SyncAll uses.
#include "probe.h"

namespace flag_of_meeting {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    constexpr uint16_t FLAG = ordered ? 5 : 14;
    CrossCoreSetFlag<0, PIPE_MTE3>(FLAG);
    SyncAll();
    CrossCoreWaitFlag(FLAG);
}
} // namespace flag_of_meeting
