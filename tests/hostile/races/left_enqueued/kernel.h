// A tensor is never taken out of its queue, and its flag stays set.
#include "probe.h"

namespace left_enqueued {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    probe.InitQueues();
    LocalTensor<float> x = probe.in.AllocTensor<float>();
    DataCopy(x, probe.x, TILE);
    probe.in.EnQue(x);
    if (ordered) probe.in.FreeTensor(x = probe.in.DeQue<float>());
}
} // namespace left_enqueued
