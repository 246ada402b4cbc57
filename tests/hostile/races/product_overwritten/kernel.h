// The cube core writes its next product over one that its vector core may still be reading.
#include "cube_probe.h"

namespace product_overwritten {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        cube.Compute();
        CrossCoreSetFlag<2, PIPE_FIX>(1);
        if (ordered) CrossCoreWaitFlag(2);
        PipeBarrier<PIPE_FIX>();
        cube.Store();
        if (!ordered) CrossCoreWaitFlag(2);
    }
    if ASCEND_IS_AIV {
        probe.InitBuffers();
        PlainShare(probe);
        CrossCoreWaitFlag(1);
        DataCopy(probe.a, probe.scratch[probe.block * SQUARE], TILE);
        CrossCoreSetFlag<2, PIPE_MTE2>(2);
    }
}
} // namespace product_overwritten
