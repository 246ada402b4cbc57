// A buffer is given back twice.
#include "probe.h"

namespace freed_twice {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    probe.InitQueues();
    LocalTensor<float> x = probe.in.AllocTensor<float>();
    probe.in.FreeTensor(x);
    if (!ordered) probe.in.FreeTensor(x);
    PlainShare(probe);
}
} // namespace freed_twice
