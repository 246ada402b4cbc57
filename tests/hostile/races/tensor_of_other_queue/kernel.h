// The tensor of one queue is enqueued in another.
#include "probe.h"

namespace tensor_of_other_queue {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    probe.InitQueues();
    LocalTensor<float> x = ordered ? probe.out.AllocTensor<float>() : probe.in.AllocTensor<float>();
    probe.out.EnQue(x);
    x = probe.out.DeQue<float>();
    probe.out.FreeTensor(x);
}
} // namespace tensor_of_other_queue
