// Some blocks add to a value of which others take the maximum: the order matters.
#include "probe.h"

namespace sum_and_maximum {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    if (ordered || probe.block % 2 == 0) {
        SetAtomicAdd<float>();
    } else {
        SetAtomicMax<float>();
    }
    DataCopy(probe.scratch, probe.b, 8);
    SetAtomicNone();
}
} // namespace sum_and_maximum
