// A second TPipe takes event ids that buffers of the first still hold.
#include "probe.h"

namespace event_ids_of_two_pipes {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitQueues();
    LocalTensor<float> x = probe.in.AllocTensor<float>();
    probe.in.FreeTensor(x);
    if (ordered) probe.pipe.Destroy();
    TPipe pipe;
    TQue<TPosition::VECIN, 1> queue;
    pipe.InitBuffer(queue, 1, 32);
    x = queue.AllocTensor<float>();
    queue.FreeTensor(x);
    pipe.Destroy();
    probe.pipe.Init();
    probe.InitBuffers();
    PlainShare(probe);
}
} // namespace event_ids_of_two_pipes
