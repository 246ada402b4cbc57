// A cube core goes on because of what vector instructions left behind, which it does not execute.
#include "cube_probe.h"

namespace cube_core_reads_vector_values {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    Duplicate(probe.a, 3.0f, TILE);
    Settle();
    WholeReduceMax<float>(probe.b, probe.a, 64, 1, 1, 1, 8);
    Settle();
    if ASCEND_IS_AIC {
        float maximum = 0.0f, place = 0.0f;
        GetReduceMaxMinCount<float>(maximum, place);
        const bool seen = probe.a.GetValue(0) == 3.0f || maximum == 3.0f;
        if (ordered || seen) CrossCoreSetFlag<2, PIPE_FIX>(0);
    }
    if ASCEND_IS_AIV {
        CrossCoreWaitFlag(0);
        PlainShare(probe);
    }
}
} // namespace cube_core_reads_vector_values
