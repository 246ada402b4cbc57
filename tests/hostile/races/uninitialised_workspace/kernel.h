// The output takes in a part of the workspace that nobody wrote.
#include "probe.h"

namespace uninitialised_workspace {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    const auto mine = probe.scratch[probe.block * TILE];
    if (ordered) DataCopy(mine, probe.b, TILE);
    Settle();
    DataCopy(probe.a, mine, TILE);
    Settle();
    DataCopy(probe.y[TILE], probe.a, TILE);
}
} // namespace uninitialised_workspace
