// A matrix stays in a part of L1 that was given back, from where the library takes room for its operands.
#include "matmul_probe.h"

namespace matmul_over_kept_l1 {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    if ASCEND_IS_AIC {
        MatmulProbe cube(probe);
        cube.MakeOnes();
        if (!ordered) {
            probe.pipe.Reset();
        }
        cube.Square<InGm>(cube.input);
        Settle();
        cube.Square<InL1>(cube.inL1);
    }
    ShareAfterOnes(probe);
}
} // namespace matmul_over_kept_l1
