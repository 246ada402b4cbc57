// A pipe waits for a flag that nobody sets.
#include "probe.h"

namespace flag_never_set {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    if (ordered) SetFlag<HardEvent::V_MTE3>(EVENT_ID2);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID2);
    PlainShare(probe);
}
} // namespace flag_never_set
