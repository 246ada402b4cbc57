// The cube core sets one flag and its vector core waits for another.
#include "cube_probe.h"

namespace product_flag_of_other_number {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        cube.Compute();
        CrossCoreSetFlag<2, PIPE_FIX>(1);
    }
    if ASCEND_IS_AIV {
        probe.InitBuffers();
        PlainShare(probe);
        CrossCoreWaitFlag(ordered ? 1 : 2);
        DataCopy(probe.a, probe.scratch[probe.block * SQUARE], TILE);
    }
}
} // namespace product_flag_of_other_number
