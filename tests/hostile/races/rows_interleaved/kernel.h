// A copy fills every other row of a buffer while the rows between are computed, and is one row off.
#include "probe.h"

namespace rows_interleaved {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    constexpr uint32_t ROW = 8, ROWS = TILE / ROW / 2;
    Adds(probe.a, probe.a, 1.0f, ROW, ROWS, UnaryRepeatParams(1, 1, 2, 2));
    DataCopy(probe.a[ordered ? ROW : 0], probe.x, DataCopyParams(ROWS, 1, 0, 1));
}
} // namespace rows_interleaved
