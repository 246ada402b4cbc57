// Two buffers in turn, and the next tile goes into the one that is still being read.
#include "probe.h"

namespace buffers_swapped {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    DataCopy(probe.a, probe.x, TILE);
    Order<HardEvent::MTE2_V, true>();
    TBuf<TPosition::VECCALC> third;
    probe.pipe.InitBuffer(third, TILE * sizeof(float));
    const auto sum = third.Get<float>();
    Adds(sum, probe.a, 1.0f, TILE);
    const auto next = ordered ? probe.b : probe.a;
    DataCopy(next, probe.x[TILE], TILE);
    Order<HardEvent::V_MTE3, true>();
    DataCopy(probe.y, sum, TILE);
    Order<HardEvent::MTE3_V, true>();
    Order<HardEvent::MTE2_V, true>();
    Adds(sum, next, 1.0f, TILE);
    Order<HardEvent::V_MTE3, true>();
    DataCopy(probe.y[TILE], sum, TILE);
}
} // namespace buffers_swapped
