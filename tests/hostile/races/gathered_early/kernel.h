// Elements are gathered from a table that a copy may still be writing.
#include "probe.h"

namespace gathered_early {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    TBuf<TPosition::VECCALC> third;
    probe.pipe.InitBuffer(third, TILE * sizeof(int32_t));
    const auto offsets = third.Get<int32_t>();
    CreateVecIndex(offsets, 0, TILE);
    PipeBarrier<PIPE_V>();
    Muls(offsets, offsets, (int32_t)sizeof(float), TILE);
    Settle();
    DataCopy(probe.a, probe.x, TILE);
    Order<HardEvent::MTE2_V, ordered>();
    Gather(probe.b, probe.a, offsets.ReinterpretCast<uint32_t>(), 0, TILE);
}
} // namespace gathered_early
