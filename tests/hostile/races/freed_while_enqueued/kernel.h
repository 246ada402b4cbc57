// The buffer of a tensor is given back while it waits in the queue.
#include "probe.h"

namespace freed_while_enqueued {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    probe.InitQueues(2);
    LocalTensor<float> x = probe.in.AllocTensor<float>();
    probe.in.EnQue(x);
    if (ordered) x = probe.in.DeQue<float>();
    probe.in.FreeTensor(x);
}
} // namespace freed_while_enqueued
