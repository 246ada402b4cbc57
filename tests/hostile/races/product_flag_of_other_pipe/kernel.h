// The cube core tells its vector core when the product is computed, not when it is in global memory.
#include "cube_probe.h"

namespace product_flag_of_other_pipe {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        cube.Compute();
        CrossCoreSetFlag<2, ordered ? PIPE_FIX : PIPE_M>(1);
    }
    if ASCEND_IS_AIV {
        probe.InitBuffers();
        PlainShare(probe);
        CrossCoreWaitFlag(1);
        DataCopy(probe.a, probe.scratch[probe.block * SQUARE], TILE);
    }
}
} // namespace product_flag_of_other_pipe
