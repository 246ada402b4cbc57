// A product is added to sums that nobody has begun.
#include "matmul_probe.h"

namespace matmul_sums_of_nothing {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    if ASCEND_IS_AIC {
        MatmulProbe cube(probe);
        MatmulImpl<InL1, InL1, SumsInGm> object;
        cube.MakeOnes();
        object.Init(&cube.plan);
        object.SetTensorA(cube.inL1);
        object.SetTensorB(cube.inL1);
        object.Iterate(!ordered);
        object.GetTensorC(cube.product);
        object.End();
    }
    ShareAfterOnes(probe);
}
} // namespace matmul_sums_of_nothing
