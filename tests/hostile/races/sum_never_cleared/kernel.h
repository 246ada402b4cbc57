// The output takes in a sum that begins with whatever the workspace holds.
#include "probe.h"

namespace sum_never_cleared {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    const auto mine = probe.scratch[probe.block * TILE];
    Duplicate(probe.a, 0.0f, TILE);
    Settle();
    if (ordered) DataCopy(mine, probe.a, TILE);
    Settle();
    SetAtomicAdd<float>();
    DataCopy(mine, probe.b, TILE);
    SetAtomicNone();
    Settle();
    DataCopy(probe.a, mine, TILE);
    Settle();
    DataCopy(probe.y[TILE], probe.a, TILE);
}
} // namespace sum_never_cleared
