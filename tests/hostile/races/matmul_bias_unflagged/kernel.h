// A vector core hands over a bias that may still be on its way to the unified buffer.
#include "matmul_probe.h"

namespace matmul_bias_unflagged {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    TCubeTiling plan = SquarePlan();
    Matmul<InGm, InGm, SumsInGm, MatmulType<TPosition::VECOUT, CubeFormat::ND, float>> object;
    REGIST_MATMUL_OBJ(&probe.pipe, GetSysWorkSpacePtr(), object, &plan);
    MatmulProbe operands(probe);
    probe.InitBuffers();
    PlainShare(probe);
    object.SetTensorA(operands.input);
    object.SetTensorB(operands.input);
    DataCopy(probe.a, probe.x, SIDE);
    Order<HardEvent::MTE2_MTE3, ordered>();
    object.SetBias(probe.a);
    object.IterateAll(operands.product);
    object.End();
}
} // namespace matmul_bias_unflagged
