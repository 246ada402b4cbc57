// Fractals are loaded from L1 while the copy into it may still be under way.
#include "cube_probe.h"

namespace cube_copy_unflagged {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    VectorShare(probe);
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        cube.Load();
        Order<HardEvent::MTE2_MTE1, ordered>();
        cube.Split();
    }
}
} // namespace cube_copy_unflagged
