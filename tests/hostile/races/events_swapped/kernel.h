// Two buffers, each with an event of its own, and the waits are for the other one.
#include "probe.h"

namespace events_swapped {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    DataCopy(probe.a, probe.x, TILE);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    DataCopy(probe.b, probe.x[TILE], TILE);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID1);
    WaitFlag<HardEvent::MTE2_V>(ordered ? EVENT_ID1 : EVENT_ID0);
    Adds(probe.b, probe.b, 1.0f, TILE);
    WaitFlag<HardEvent::MTE2_V>(ordered ? EVENT_ID0 : EVENT_ID1);
    Adds(probe.a, probe.a, 1.0f, TILE);
    Order<HardEvent::V_MTE3, true>();
    DataCopy(probe.y, probe.a, TILE);
    DataCopy(probe.y[TILE], probe.b, TILE);
}
} // namespace events_swapped
