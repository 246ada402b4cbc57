// A maximum is read from its register while the vector unit may still look for it.
#include "probe.h"

namespace extreme_register_early {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    constexpr uint32_t LANES = 64;
    probe.InitBuffers();
    Duplicate(probe.a, 1.0f, TILE);
    Settle();
    WholeReduceMax<float>(probe.b, probe.a, LANES, TILE / LANES, 1, 1, 8);
    Order<HardEvent::V_S, ordered>();
    float one, index;
    GetReduceMaxMinCount<float>(one, index);
    Settle();
    AddToShare(probe, one);
}
} // namespace extreme_register_early
