// In one repeat the result begins inside the operand.
#include "probe.h"

namespace result_over_part_of_operand {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    Exp(probe.a[ordered ? 64 : 16], probe.a, 64);
}
} // namespace result_over_part_of_operand
