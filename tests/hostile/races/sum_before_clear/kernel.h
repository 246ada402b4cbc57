// A core adds to what its own copy may still be clearing.
#include "probe.h"

namespace sum_before_clear {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    const auto mine = probe.scratch[probe.block * TILE];
    Duplicate(probe.a, 0.0f, TILE);
    Settle();
    DataCopy(mine, probe.a, TILE);
    if (ordered) PipeBarrier<PIPE_MTE3>();
    SetAtomicAdd<float>();
    DataCopy(mine, probe.b, TILE);
    SetAtomicNone();
}
} // namespace sum_before_clear
