// The scalar unit reads a line of the buffer of which the vector unit still writes the second half.
#include "probe.h"

namespace line_of_buffer_shared {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    Adds(probe.a, probe.b, 1.0f, TILE);
    Settle();
    Adds(probe.a[8], probe.b, 2.0f, 8);
    Order<HardEvent::V_S, ordered>();
    const float first = probe.a.GetValue(0);
    probe.b.SetValue(0, first + probe.a.GetValue(8));
}
} // namespace line_of_buffer_shared
