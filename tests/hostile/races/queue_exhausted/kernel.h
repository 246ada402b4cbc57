// A third tensor of a queue of two buffers, none of them freed.
#include "probe.h"

namespace queue_exhausted {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    probe.InitQueues(2);
    LocalTensor<float> first = probe.in.AllocTensor<float>();
    LocalTensor<float> second = probe.in.AllocTensor<float>();
    if (ordered) probe.in.FreeTensor(first);
    LocalTensor<float> third = probe.in.AllocTensor<float>();
}
} // namespace queue_exhausted
