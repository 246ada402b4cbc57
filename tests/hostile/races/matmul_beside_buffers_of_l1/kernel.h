// A Matmul object and a buffer of the kernel, each of which has room in L1, but not both. A TPipe that begins anew gives it back.
#include "matmul_probe.h"

namespace matmul_beside_buffers_of_l1 {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    VectorShare(probe);
    if ASCEND_IS_AIC {
        MatmulProbe cube(probe);
        TBuf<TPosition::A1> large;
        probe.pipe.InitBuffer(large, 256 * 1024);
        if (ordered) {
            probe.pipe.Reset();
        }
        cube.plan.baseM = cube.plan.baseN = cube.plan.baseK = 128;
        cube.plan.depthA1 = cube.plan.depthB1 = 6;
        cube.Square<InGm>(cube.input);
    }
}
} // namespace matmul_beside_buffers_of_l1
