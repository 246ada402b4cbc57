// A raw pointer reads from global memory what a copy may still be writing there.
#include "probe.h"

namespace pointer_reads_output {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    DataCopy(probe.scratch[probe.block * SHARE], probe.b, TILE);
    Order<HardEvent::MTE3_S, ordered>();
    const __gm__ float* mine = probe.scratch[probe.block * SHARE].GetPhyAddr();
    probe.a.SetValue(0, mine[3]);
}
} // namespace pointer_reads_output
