// Elements are widened over those that have yet to be widened.
#include "probe.h"

namespace widened_in_place {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    LocalTensor<half> narrow = probe.a.ReinterpretCast<half>();
    Duplicate(narrow, half(1.0f), 2 * TILE);
    PipeBarrier<PIPE_V>();
    Cast(probe.a, narrow[ordered ? TILE : 0], RoundMode::CAST_NONE, TILE);
}
} // namespace widened_in_place
