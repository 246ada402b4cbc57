// The cube multiplies what may still be on its way to L0.
#include "cube_probe.h"

namespace cube_load_unflagged {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    VectorShare(probe);
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        cube.Load();
        Order<HardEvent::MTE2_MTE1, true>();
        cube.Split();
        Order<HardEvent::MTE1_M, ordered>();
        cube.Multiply();
    }
}
} // namespace cube_load_unflagged
