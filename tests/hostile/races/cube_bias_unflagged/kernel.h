// Mmad reads a bias that may still be on its way to the table.
#include "cube_probe.h"

namespace cube_bias_unflagged {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        TBuf<TPosition::C1> bufferC1;
        TBuf<TPosition::C2> bufferC2;
        probe.pipe.InitBuffer(bufferC1, SIDE * sizeof(float));
        probe.pipe.InitBuffer(bufferC2, SIDE * sizeof(float));
        LocalTensor<float> bias1 = bufferC1.Get<float>(), bias2 = bufferC2.Get<float>();
        DataCopy(bias1, probe.allX, SIDE);
        cube.Prepare();
        DataCopy(bias2, bias1, DataCopyParams(1, SIDE * sizeof(float) / 64, 0, 0));
        Order<HardEvent::MTE1_M, ordered>();
        Mmad(cube.c, cube.a2, cube.b2, bias2, MmadParams(SIDE, SIDE, SIDE, 0, true, false));
        Order<HardEvent::M_FIX, true>();
        cube.Store();
    }
    VectorShare(probe);
}
} // namespace cube_bias_unflagged
