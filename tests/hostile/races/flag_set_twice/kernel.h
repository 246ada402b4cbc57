// A flag is set again before anyone waited for it.
#include "probe.h"

namespace flag_set_twice {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    if (!ordered) SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    PlainShare(probe);
}
} // namespace flag_set_twice
