// One block reads a sum that the others may still add to.
#include "probe.h"

namespace sum_read_early {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    SetAtomicAdd<float>();
    DataCopy(probe.scratch, probe.b, 8);
    SetAtomicNone();
    Settle();
    if (ordered) SyncAll();
    if (probe.block == 3) DataCopy(probe.a, probe.scratch, 8);
}
} // namespace sum_read_early
