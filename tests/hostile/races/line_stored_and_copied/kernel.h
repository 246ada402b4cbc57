// One core stores to a line into which another one copies.
#include "probe.h"

namespace line_stored_and_copied {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    if (probe.block == 0) probe.scratch.SetValue(0, 1.0f);
    if (probe.block == 1) DataCopy(probe.scratch[ordered ? 16 : 8], probe.b, 8);
}
} // namespace line_stored_and_copied
