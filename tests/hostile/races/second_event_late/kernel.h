// The event of the second copy is awaited after its tile has been used.
#include "probe.h"

namespace second_event_late {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    DataCopy(probe.a, probe.x, TILE);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    DataCopy(probe.b, probe.x[TILE], TILE);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID1);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    if (ordered) WaitFlag<HardEvent::MTE2_V>(EVENT_ID1);
    Adds(probe.a, probe.a, 1.0f, TILE);
    Adds(probe.b, probe.b, 1.0f, TILE);
    if (!ordered) WaitFlag<HardEvent::MTE2_V>(EVENT_ID1);
    Order<HardEvent::V_MTE3, true>();
    DataCopy(probe.y, probe.a, TILE);
    DataCopy(probe.y[TILE], probe.b, TILE);
}
} // namespace second_event_late
