// The next product overwrites one that may still be on its way out.
#include "cube_probe.h"

namespace cube_result_overwritten {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    VectorShare(probe);
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        cube.Compute();
        Order<HardEvent::FIX_M, ordered>();
        cube.Multiply();
    }
}
} // namespace cube_result_overwritten
