// Two tensors are enqueued in a row, and the queue has the depth of one.
#include "probe.h"

namespace queue_too_shallow {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    TQue<TPosition::VECIN, ordered ? 2 : 1> queue;
    probe.pipe.InitBuffer(queue, 2, TILE * sizeof(float));
    queue.EnQue(queue.template AllocTensor<float>());
    queue.EnQue(queue.template AllocTensor<float>());
    for (uint32_t i = 0; i < 2; ++i) {
        LocalTensor<float> x = queue.template DeQue<float>();
        queue.FreeTensor(x);
    }
}
} // namespace queue_too_shallow
