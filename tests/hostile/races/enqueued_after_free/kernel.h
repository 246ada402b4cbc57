// A tensor goes into its queue after its buffer was given back.
#include "probe.h"

namespace enqueued_after_free {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    probe.InitQueues(2);
    LocalTensor<float> x = probe.in.AllocTensor<float>();
    if (!ordered) probe.in.FreeTensor(x);
    probe.in.EnQue(x);
    x = probe.in.DeQue<float>();
    probe.in.FreeTensor(x);
}
} // namespace enqueued_after_free
