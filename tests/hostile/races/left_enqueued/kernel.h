// A tensor is never taken out of its queue, and its flag stays set.
#include "probe.h"

namespace left_enqueued {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    probe.InitQueues();
    CopyIn(probe, 0);
    if (ordered) {
        LocalTensor<float> x = probe.in.DeQue<float>();
        probe.in.FreeTensor(x);
    }
}
} // namespace left_enqueued
