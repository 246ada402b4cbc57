// The cores meet by signals in global memory that nobody has cleared.
#include "probe.h"

namespace signals_uncleared {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    TBuf<TPosition::VECCALC> third;
    probe.pipe.InitBuffer(third, BLOCKS * 32);
    const auto work = third.Get<int32_t>();
    GlobalTensor<int32_t> signals;
    signals.SetGlobalBuffer((__gm__ int32_t*)probe.scratch.GetPhyAddr(), BLOCKS * 8);
    Duplicate(work, (int32_t)0, BLOCKS * 8);
    Settle();
    if (ordered) DataCopy(signals, work, BLOCKS * 8);
    Settle();
    SyncAll(signals, work);
}
} // namespace signals_uncleared
