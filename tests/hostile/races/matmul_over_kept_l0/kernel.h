// A matrix stays in L0A and L0B while the library multiplies others, for which it takes all of both.
#include "matmul_probe.h"

namespace matmul_over_kept_l0 {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    if ASCEND_IS_AIC {
        CubeProbe steps(probe);
        MatmulProbe cube(probe);
        cube.MakeOnes();
        steps.a1 = cube.inL1;
        steps.Split();
        Settle();
        cube.Square<InGm>(cube.input);
        Settle();
        if (ordered) {
            steps.Split();
            Settle();
        }
        steps.Multiply();
        Settle();
        steps.Store();
    }
    ShareAfterOnes(probe);
}
} // namespace matmul_over_kept_l0
