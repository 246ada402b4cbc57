// A flag that is set all the while has the number that the queue takes.
#include "probe.h"

namespace event_set_across_queue {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    const int32_t id = ordered ? probe.pipe.AllocEventID<HardEvent::MTE2_V>() : EVENT_ID0;
    SetFlag<HardEvent::MTE2_V>(id);
    probe.InitQueues();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        CopyIn(probe, offset);
        Compute(probe);
        CopyOut(probe, offset);
    }
    WaitFlag<HardEvent::MTE2_V>(id);
    if (ordered) probe.pipe.ReleaseEventID<HardEvent::MTE2_V>(id);
}
} // namespace event_set_across_queue
