// A vector core reads a product that its cube core may still be writing.
#include "cube_probe.h"

namespace product_read_early {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        cube.Compute();
        CrossCoreSetFlag<2, PIPE_FIX>(0);
    }
    if ASCEND_IS_AIV {
        probe.InitBuffers();
        PlainShare(probe);
        if (ordered) CrossCoreWaitFlag(0);
        DataCopy(probe.a, probe.scratch[probe.block * SQUARE], TILE);
        if (!ordered) CrossCoreWaitFlag(0);
    }
}
} // namespace product_read_early
