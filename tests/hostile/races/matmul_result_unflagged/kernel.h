// A Matmul object takes the result of another one from L1 before it is there.
#include "matmul_probe.h"

namespace matmul_result_unflagged {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    VectorShare(probe);
    if ASCEND_IS_AIC {
        MatmulProbe cube(probe);
        MatmulImpl<InGm, InGm, InL1> first;
        first.Init(&cube.plan);
        first.SetTensorA(cube.input);
        first.SetTensorB(cube.input);
        first.IterateAll(cube.inL1);
        first.End();
        Order<HardEvent::FIX_MTE1, ordered>();
        cube.Square<InL1>(cube.inL1);
    }
}
} // namespace matmul_result_unflagged
