// All blocks write one sum, without atomics.
#include "probe.h"

namespace shared_sum_plain {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    Duplicate(probe.a, (float)(int32_t)probe.block, 8);
    Settle();
    if (ordered) SetAtomicAdd<float>();
    DataCopy(probe.scratch, probe.a, 8);
    SetAtomicNone();
}
} // namespace shared_sum_plain
