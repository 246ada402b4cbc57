// A flag is set and nobody waits for it: it is still set when the next kernel starts.
#include "probe.h"

namespace event_left_set {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    SetFlag<HardEvent::V_MTE3>(EVENT_ID3);
    if (ordered) WaitFlag<HardEvent::V_MTE3>(EVENT_ID3);
}
} // namespace event_left_set
