// The two vector cores of a group exchange tiles by a flag that only the cube core hears.
#include "probe.h"

namespace vector_cores_of_group {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    if ASCEND_IS_AIC {
        if (!ordered) CrossCoreWaitFlag(6);
        return;
    }
    probe.InitBuffers();
    for (uint32_t tile = GetSubBlockIdx(); tile < TILES; tile += GetSubBlockNum()) {
        const uint32_t first = GetBlockIdx() / GetSubBlockNum() * SHARE + tile * TILE;
        probe.x = probe.allX[first];
        probe.y = probe.allY[first];
        PlainTile(probe, 0);
    }
    DataCopy(probe.scratch[probe.block * TILE], probe.b, TILE);
    CrossCoreSetFlag<ordered ? 1 : 2, PIPE_MTE3>(6);
    if (ordered) CrossCoreWaitFlag(6);
    DataCopy(probe.a, probe.scratch[(probe.block ^ 1) * TILE], TILE);
}
} // namespace vector_cores_of_group
