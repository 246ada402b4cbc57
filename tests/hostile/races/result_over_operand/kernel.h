// Each repeat writes what the next one reads.
#include "probe.h"

namespace result_over_operand {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    Adds(probe.a[ordered ? 0 : 64], probe.a, 1.0f, TILE - 64);
}
} // namespace result_over_operand
