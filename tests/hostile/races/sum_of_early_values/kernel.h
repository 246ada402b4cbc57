// A reduction, which is several instructions, starts on what the one before it may still be writing.
#include "probe.h"

namespace sum_of_early_values {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    TBuf<TPosition::VECCALC> third;
    probe.pipe.InitBuffer(third, TILE * sizeof(float));
    Adds(probe.a, probe.b, 1.0f, TILE);
    if (ordered) PipeBarrier<PIPE_V>();
    ReduceSum(probe.b, probe.a, third.Get<float>(), TILE);
}
} // namespace sum_of_early_values
