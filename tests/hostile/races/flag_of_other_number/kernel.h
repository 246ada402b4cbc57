// The cores set one flag and wait for another.
#include "probe.h"

namespace flag_of_other_number {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    CrossCoreSetFlag<0, PIPE_MTE3>(3);
    CrossCoreWaitFlag(ordered ? 3 : 4);
}
} // namespace flag_of_other_number
