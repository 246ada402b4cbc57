// Blocks of two Matmul objects, each of which has room in L0C, but not both: the first is lost when the second comes.
#include "matmul_probe.h"

namespace matmul_blocks_beyond_l0c {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    if ASCEND_IS_AIC {
        MatmulProbe cube(probe);
        MatmulImpl<InL1, InL1, SumsInGm> first, second;
        cube.MakeOnes();
        cube.plan.baseM = 128;
        cube.plan.baseN = ordered ? 128 : 256;
        first.Init(&cube.plan);
        first.SetTensorA(cube.inL1);
        first.SetTensorB(cube.inL1);
        second.Init(&cube.plan);
        second.SetTensorA(cube.inL1);
        second.SetTensorB(cube.inL1);
        first.Iterate();
        second.Iterate();
        first.GetTensorC(cube.product);
        first.End();
        second.End();
    }
    ShareAfterOnes(probe);
}
} // namespace matmul_blocks_beyond_l0c
