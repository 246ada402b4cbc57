// A tile is computed from what happens to be in the buffer.
#include "probe.h"

namespace uninitialised_buffer {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    TBuf<TPosition::VECCALC> other;
    probe.pipe.InitBuffer(other, TILE * sizeof(float));
    const auto fresh = other.Get<float>();
    if (ordered) DataCopy(fresh, probe.x, TILE);
    Settle();
    Adds(fresh, fresh, 1.0f, TILE);
    Settle();
    DataCopy(probe.y, fresh, TILE);
}
} // namespace uninitialised_buffer
