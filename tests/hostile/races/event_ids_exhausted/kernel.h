// More buffers wait to be allocated again than the pair of pipes has event ids.
#include "probe.h"

namespace event_ids_exhausted {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    constexpr uint32_t QUEUES = ordered ? 8 : 9;
    TQue<TPosition::VECIN, 1> queues[QUEUES];
    for (uint32_t i = 0; i < QUEUES; ++i) {
        probe.pipe.InitBuffer(queues[i], 1, 32);
        LocalTensor<float> x = queues[i].template AllocTensor<float>();
        queues[i].FreeTensor(x);
    }
    probe.InitBuffers();
    PlainShare(probe);
}
} // namespace event_ids_exhausted
