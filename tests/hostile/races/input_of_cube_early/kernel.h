// A cube core reads what its vector core may still be writing.
#include "cube_probe.h"

namespace input_of_cube_early {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    if ASCEND_IS_AIV {
        probe.InitBuffers();
        PlainShare(probe);
        DataCopy(probe.scratch[probe.block * TILE], probe.b, TILE);
        CrossCoreSetFlag<2, PIPE_MTE3>(3);
    }
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        cube.input.SetGlobalBuffer((__gm__ half*)probe.scratch[probe.block * TILE].GetPhyAddr(), SQUARE);
        if (ordered) CrossCoreWaitFlag(3);
        cube.Load();
        if (!ordered) CrossCoreWaitFlag(3);
    }
}
} // namespace input_of_cube_early
