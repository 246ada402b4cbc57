// A kernel changes a matrix in global memory while the library multiplies what it has copied of it to L1.
#include "matmul_probe.h"

namespace matmul_operand_changed {
__aicore__ inline void Change(GlobalTensor<half>& matrix)
{
    Settle();
    matrix.SetValue(0, matrix.GetValue(0) + (half)1.0f);
    DataCacheCleanAndInvalid<half, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(matrix);
    Settle();
}

template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    VectorShare(probe);
    if ASCEND_IS_AIC {
        if (probe.block > 0) {
            return;
        }
        MatmulProbe cube(probe);
        GlobalTensor<half> right;
        right.SetGlobalBuffer((__gm__ half*)probe.scratch[SQUARE].GetPhyAddr(), SQUARE);
        right.SetValue(0, (half)1.0f);
        Change(right);
        cube.plan.baseM = cube.plan.baseN = cube.plan.baseK = SIDE / 2;
        cube.plan.depthB1 = 4;
        MatmulImpl<InGm, InGm, SumsInGm> object;
        object.Init(&cube.plan);
        object.SetTensorA(cube.input);
        object.SetTensorB(right);
        while (object.Iterate()) {
            object.GetTensorC(cube.product);
            if (!ordered) {
                Change(right);
            }
        }
        Change(right);
        object.End();
    }
}
} // namespace matmul_operand_changed
