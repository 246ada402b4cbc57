// The rows that Fixpipe writes lie over each other.
#include "cube_probe.h"

namespace cube_rows_overlap {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        cube.Prepare();
        cube.Multiply();
        Order<HardEvent::M_FIX, true>();
        Fixpipe(cube.product, cube.c, FixpipeParamsV220(SIDE, SIDE, SIDE, ordered ? SIDE : SIDE - 8, false));
    }
    VectorShare(probe);
}
} // namespace cube_rows_overlap
