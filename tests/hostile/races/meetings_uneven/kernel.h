// One block goes round the loop once less than the others, and meets them once less.
#include "probe.h"

namespace meetings_uneven {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    const uint32_t rounds = ordered || probe.block != 1 ? 3 : 2;
    for (uint32_t round = 0; round < rounds; ++round) SyncAll();
}
} // namespace meetings_uneven
