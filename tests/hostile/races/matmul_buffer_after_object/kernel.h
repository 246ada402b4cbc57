// A buffer in L1 that has room there, but not beside a Matmul object that has blocks left.
#include "matmul_probe.h"

namespace matmul_buffer_after_object {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    VectorShare(probe);
    if ASCEND_IS_AIC {
        MatmulProbe cube(probe);
        cube.plan.baseM = cube.plan.baseK = 128;
        cube.plan.baseN = SIDE / 2;
        cube.plan.depthA1 = 6;
        MatmulImpl<InGm, InGm, SumsInGm> object;
        object.Init(&cube.plan);
        object.SetTensorA(cube.input);
        object.SetTensorB(cube.input);
        object.Iterate();
        TBuf<TPosition::A1> late;
        probe.pipe.InitBuffer(late, (ordered ? 256 : 480) * 1024);
        object.End();
    }
}
} // namespace matmul_buffer_after_object
