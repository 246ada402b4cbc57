// The next fractals are loaded over those that the cube may still be multiplying.
#include "cube_probe.h"

namespace cube_l0_reused {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    VectorShare(probe);
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        cube.Prepare();
        cube.Multiply();
        Order<HardEvent::M_MTE1, ordered>();
        cube.Split();
    }
}
} // namespace cube_l0_reused
