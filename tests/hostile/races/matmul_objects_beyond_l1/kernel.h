// Two Matmul objects take turns, whose plans have room in L1 each, but not both.
#include "matmul_probe.h"

namespace matmul_objects_beyond_l1 {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    VectorShare(probe);
    if ASCEND_IS_AIC {
        MatmulProbe cube(probe);
        cube.plan.baseM = cube.plan.baseK = 128;
        cube.plan.baseN = SIDE / 2;
        cube.plan.depthA1 = ordered ? 6 : 12;
        MatmulImpl<InGm, InGm, SumsInGm> first, second;
        first.Init(&cube.plan);
        first.SetTensorA(cube.input);
        first.SetTensorB(cube.input);
        second.Init(&cube.plan);
        second.SetTensorA(cube.input);
        second.SetTensorB(cube.input);
        first.Iterate();
        second.Iterate();
        first.End();
        second.End();
    }
}
} // namespace matmul_objects_beyond_l1
