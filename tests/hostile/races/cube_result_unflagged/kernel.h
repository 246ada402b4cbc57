// The product is copied out while it may still be computed.
#include "cube_probe.h"

namespace cube_result_unflagged {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    VectorShare(probe);
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        cube.Prepare();
        cube.Multiply();
        Order<HardEvent::M_FIX, ordered>();
        cube.Store();
    }
}
} // namespace cube_result_unflagged
