// A vector core changes a matrix in its unified buffer while the cube core multiplies what it was sent of it.
#include "matmul_probe.h"

namespace matmul_sent_operand_changed {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    TCubeTiling plan = SquarePlan();
    plan.baseN = SIDE / 2;
    Matmul<MatmulType<TPosition::VECOUT, CubeFormat::ND, half>, InGm, SumsInGm> object;
    REGIST_MATMUL_OBJ(&probe.pipe, GetSysWorkSpacePtr(), object, &plan);
    MatmulProbe operands(probe);
    probe.InitBuffers();
    PlainShare(probe);
    LocalTensor<half> left = probe.a.ReinterpretCast<half>();
    Duplicate(left, (half)1.0f, SQUARE);
    Settle();
    object.SetTensorA(left);
    object.SetTensorB(operands.input);
    while (object.Iterate()) {
        object.GetTensorC(operands.product);
        Settle();
        if (!ordered) {
            Duplicate(left, (half)2.0f, SQUARE);
            Settle();
        }
    }
    Duplicate(left, (half)2.0f, SQUARE);
    object.End();
}
} // namespace matmul_sent_operand_changed
