// The output takes in a sum whose first product adds to what happens to be in L0C.
#include "cube_probe.h"

namespace uninitialised_product {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        InitConstValue(cube.a1, InitConstValueParams<half>(1, SQUARE / 16, 0, (half)1.0f));
        Settle();
        cube.Split();
        Settle();
        cube.Multiply(ordered);
        Order<HardEvent::M_FIX, true>();
        cube.Store();
        CrossCoreSetFlag<2, PIPE_FIX>(0);
    }
    if ASCEND_IS_AIV {
        probe.InitBuffers();
        PlainShare(probe);
        CrossCoreWaitFlag(0);
        DataCopy(probe.a, probe.scratch[probe.block * SQUARE], TILE);
        Settle();
        Muls(probe.a, probe.a, 0.0f, TILE);
        PipeBarrier<PIPE_V>();
        Add(probe.b, probe.b, probe.a, TILE);
        Settle();
        DataCopy(probe.y[TILE], probe.b, TILE);
    }
}
} // namespace uninitialised_product
