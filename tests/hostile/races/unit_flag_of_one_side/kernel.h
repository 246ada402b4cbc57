// Only the multiplication uses the unit flag: the copy out does not wait for it.
#include "cube_probe.h"

namespace unit_flag_of_one_side {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    VectorShare(probe);
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        cube.Prepare();
        cube.Multiply(true, 3);
        cube.Store(ordered ? 3 : 0);
    }
}
} // namespace unit_flag_of_one_side
