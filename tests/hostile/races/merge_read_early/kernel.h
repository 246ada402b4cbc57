// Merged queues are read without a barrier. With the counts of what was taken, which the scalar unit has to wait for, none is needed.
#include "probe.h"

namespace merge_read_early {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    constexpr uint16_t RECORDS = 32;    // of two floats each
    probe.InitBuffers();
    PlainShare(probe);
    Duplicate(probe.a, 1.0f, TILE);
    Settle();

    const uint16_t lengths[4] = {RECORDS, RECORDS, 0, 0};
    uint32_t taken[4];
    const MrgSortSrcList<float> queues(probe.a, probe.a[2 * RECORDS], probe.a, probe.a);
    MrgSort<float, ordered>(probe.b, queues, lengths, taken, 0b11, 1);
    Adds(probe.b, probe.b, 1.0f, 2 * RECORDS);
}
} // namespace merge_read_early
