// A flag has the number of the one that a freed buffer holds until it is allocated again.
#include "probe.h"

namespace event_of_freed_buffer {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitQueues();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        CopyIn(probe, offset);
        Compute(probe);
        const int32_t id = ordered ? probe.pipe.FetchEventID(HardEvent::V_MTE2) : EVENT_ID0;
        SetFlag<HardEvent::V_MTE2>(id);
        WaitFlag<HardEvent::V_MTE2>(id);
        CopyOut(probe, offset);
    }
}
} // namespace event_of_freed_buffer
