// A flag has the number of the one that an enqueued buffer holds.
#include "probe.h"

namespace event_of_enqueued_buffer {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitQueues();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        CopyIn(probe, offset);
        const int32_t id = ordered ? probe.pipe.FetchEventID(HardEvent::MTE2_V) : EVENT_ID0;
        SetFlag<HardEvent::MTE2_V>(id);
        WaitFlag<HardEvent::MTE2_V>(id);
        Compute(probe);
        CopyOut(probe, offset);
    }
}
} // namespace event_of_enqueued_buffer
