// A tensor is used once more after its buffer has gone back to the queue and been filled again.
#include "probe.h"

namespace kept_after_free {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitQueues();
    TBuf<TPosition::VECCALC> buffer;
    probe.pipe.InitBuffer(buffer, TILE * sizeof(float));
    const auto kept = buffer.Get<float>();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        CopyIn(probe, offset);
        LocalTensor<float> x = probe.in.DeQue<float>();
        LocalTensor<float> y = probe.out.AllocTensor<float>();
        Adds(y, x, 1.0f, TILE);
        probe.in.FreeTensor(x);
        LocalTensor<float> again = probe.in.AllocTensor<float>();
        DataCopy(again, probe.allX, TILE);
        if (!ordered) Adds(kept, x, 1.0f, TILE);
        probe.in.EnQue(again);
        again = probe.in.DeQue<float>();
        if (ordered) Adds(kept, again, 1.0f, TILE);
        probe.in.FreeTensor(again);
        probe.out.EnQue(y);
        CopyOut(probe, offset);
    }
}
} // namespace kept_after_free
