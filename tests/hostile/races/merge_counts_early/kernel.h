// What a merge took of each queue is read while the vector unit may still merge; only the second flag is for it.
#include "probe.h"

namespace merge_counts_early {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    constexpr uint16_t RECORDS = 32;    // of two floats each
    probe.InitBuffers();
    Duplicate(probe.a, 1.0f, TILE);
    Order<HardEvent::V_S, true>();
    Settle();
    const uint16_t lengths[4] = {RECORDS, RECORDS, 0, 0};
    const MrgSortSrcList<float> queues(probe.a, probe.a[2 * RECORDS], probe.a, probe.a);
    MrgSort<float>(probe.b, queues, MrgSort4Info(lengths, false, 0b11, 1));
    Order<HardEvent::V_S, ordered>();
    uint16_t first, second, third, fourth;
    GetMrgSortResult(first, second, third, fourth);
    Settle();
    AddToShare(probe, (float)(first / second));
}
} // namespace merge_counts_early
