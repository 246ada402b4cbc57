// A copy into a place that is no multiple of 32 bytes.
#include "probe.h"

namespace copy_to_odd_place {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    DataCopy(probe.a[ordered ? 8 : 4], probe.x, 8);
}
} // namespace copy_to_odd_place
