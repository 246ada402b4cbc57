// A tensor goes into its queue twice.
#include "probe.h"

namespace enqueued_twice {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    probe.InitQueues(2);
    LocalTensor<float> x = probe.in.AllocTensor<float>();
    probe.in.EnQue(x);
    if (!ordered) probe.in.EnQue(x);
    x = probe.in.DeQue<float>();
    probe.in.FreeTensor(x);
}
} // namespace enqueued_twice
