// A tensor is taken out of a queue that holds none.
#include "probe.h"

namespace queue_never_filled {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    probe.InitQueues();
    if (ordered) probe.in.EnQue(probe.in.AllocTensor<float>());
    LocalTensor<float> x = probe.in.DeQue<float>();
    probe.in.FreeTensor(x);
    PlainShare(probe);
}
} // namespace queue_never_filled
