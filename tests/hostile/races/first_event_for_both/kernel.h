// Two copies, and one event, which was set after the first of them.
#include "probe.h"

namespace first_event_for_both {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    DataCopy(probe.a, probe.x, TILE);
    if (!ordered) SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    DataCopy(probe.b, probe.x[TILE], TILE);
    if (ordered) SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    Adds(probe.a, probe.a, 1.0f, TILE);
    Adds(probe.b, probe.b, 1.0f, TILE);
    Order<HardEvent::V_MTE3, true>();
    DataCopy(probe.y, probe.a, TILE);
    DataCopy(probe.y[TILE], probe.b, TILE);
}
} // namespace first_event_for_both
