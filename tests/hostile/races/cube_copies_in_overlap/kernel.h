// Two copies write the same part of L1: which one comes last?
#include "cube_probe.h"

namespace cube_copies_in_overlap {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    VectorShare(probe);
    if ASCEND_IS_AIC {
        CubeProbe cube(probe);
        cube.Load();
        if (ordered) PipeBarrier<PIPE_MTE2>();
        DataCopy(cube.a1, cube.input[SQUARE], SQUARE / 2);
    }
}
} // namespace cube_copies_in_overlap
