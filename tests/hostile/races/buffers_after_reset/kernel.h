// The pipe is reset and gives out the same bytes again, while a copy still reads them.
#include "probe.h"

namespace buffers_after_reset {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    DataCopy(probe.scratch[probe.block * TILE], probe.a, TILE);
    probe.pipe.Reset();
    TBuf<TPosition::VECCALC> again;
    probe.pipe.InitBuffer(again, TILE * sizeof(float));
    Order<HardEvent::MTE3_V, ordered>();
    Duplicate(again.Get<float>(), 0.0f, TILE);
}
} // namespace buffers_after_reset
