// The scalar unit reads from global memory what a copy may still be writing there.
#include "probe.h"

namespace scalar_reads_output {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    DataCopy(probe.scratch[probe.block * SHARE], probe.b, TILE);
    Order<HardEvent::MTE3_S, ordered>();
    probe.a.SetValue(0, probe.scratch.GetValue(probe.block * SHARE));
}
} // namespace scalar_reads_output
