// One block never comes to where the others meet.
#include "probe.h"

namespace block_misses_meeting {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    if (ordered || probe.block != 2) SyncAll();
}
} // namespace block_misses_meeting
