// A cube core multiplies what vector instructions left in a unified buffer, which it does not have.
#include "matmul_probe.h"

namespace matmul_on_vector_values {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    VectorShare(probe);
    if ASCEND_IS_AIC {
        MatmulProbe cube(probe);
        probe.InitBuffers();
        LocalTensor<half> ones = probe.a.ReinterpretCast<half>();
        Duplicate(ones, (half)1.0f, SQUARE);
        Settle();
        if (ordered) {
            cube.Square<InGm>(cube.input);
        } else {
            cube.Square<MatmulType<TPosition::VECCALC, CubeFormat::ND, half>>(ones);
        }
    }
}
} // namespace matmul_on_vector_values
