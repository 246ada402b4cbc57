// The vector core gives the product back by a pipe that has not read it.
#include "cube_probe.h"

namespace product_used_flag_of_other_pipe {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        cube.Compute();
        CrossCoreSetFlag<2, PIPE_FIX>(1);
        CrossCoreWaitFlag(2);
        PipeBarrier<PIPE_FIX>();
        cube.Store();
    }
    if ASCEND_IS_AIV {
        probe.InitBuffers();
        PlainShare(probe);
        CrossCoreWaitFlag(1);
        DataCopy(probe.a, probe.scratch[probe.block * SQUARE], TILE);
        CrossCoreSetFlag<2, ordered ? PIPE_MTE2 : PIPE_MTE3>(2);
    }
}
} // namespace product_used_flag_of_other_pipe
