// A small product adds to one that the cube may still be writing.
#include "cube_probe.h"

namespace cube_small_sums {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    VectorShare(probe);
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        cube.Prepare();
        cube.Multiply();
        if (ordered) PipeBarrier<PIPE_M>();
        cube.Multiply(false);
    }
}
} // namespace cube_small_sums
