// A Matmul object is given a matrix in L1 that may still be on its way there.
#include "matmul_probe.h"

namespace matmul_operand_unflagged {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    VectorShare(probe);
    if ASCEND_IS_AIC {
        MatmulProbe cube(probe);
        DataCopy(cube.inL1, cube.input, SQUARE);
        Order<HardEvent::MTE2_MTE1, ordered>();
        cube.Square<InL1>(cube.inL1);
    }
}
} // namespace matmul_operand_unflagged
