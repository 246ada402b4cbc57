// The scalar unit reads a tile that a copy may still be writing.
#include "probe.h"

namespace scalar_reads_copy {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    DataCopy(probe.a, probe.x, TILE);
    Order<HardEvent::MTE2_S, ordered>();
    const float value = probe.a.GetValue(3);
    Settle();
    PlainShare(probe);
    probe.a.SetValue(0, value);
}
} // namespace scalar_reads_copy
