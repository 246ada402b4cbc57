// One block clears what the others may already add to.
#include "probe.h"

namespace atomic_before_clear {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    Duplicate(probe.a, 0.0f, 8);
    Settle();
    if (probe.block == 0) DataCopy(probe.scratch, probe.a, 8);
    Settle();
    if (ordered) SyncAll();
    SetAtomicAdd<float>();
    DataCopy(probe.scratch, probe.b, 8);
    SetAtomicNone();
}
} // namespace atomic_before_clear
