// A copy replaces what the copy before it still adds to.
#include "probe.h"

namespace plain_after_sum {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    const auto mine = probe.scratch[probe.block * TILE];
    SetAtomicAdd<float>();
    DataCopy(mine, probe.b, TILE);
    SetAtomicNone();
    if (ordered) PipeBarrier<PIPE_MTE3>();
    DataCopy(mine, probe.a, TILE);
}
} // namespace plain_after_sum
