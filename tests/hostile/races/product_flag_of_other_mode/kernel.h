// The cube cores meet each other, and the vector cores wait for ever.
#include "cube_probe.h"

namespace product_flag_of_other_mode {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        cube.Compute();
        CrossCoreSetFlag<ordered ? 2 : 0, PIPE_FIX>(1);
    }
    if ASCEND_IS_AIV {
        probe.InitBuffers();
        PlainShare(probe);
        CrossCoreWaitFlag(1);
        DataCopy(probe.a, probe.scratch[probe.block * SQUARE], TILE);
    }
}
} // namespace product_flag_of_other_mode
