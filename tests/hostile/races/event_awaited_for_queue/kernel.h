// The kernel waits for the flag of a buffer itself, and DeQue then for ever.
#include "probe.h"

namespace event_awaited_for_queue {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitQueues();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        CopyIn(probe, offset);
        if (!ordered) WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
        Compute(probe);
        CopyOut(probe, offset);
    }
}
} // namespace event_awaited_for_queue
