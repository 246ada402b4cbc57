// Repeats add to one place: only the second operand may be what the one before has written.
#include "probe.h"

namespace gathered_in_first_operand {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    Duplicate(probe.b, 0.0f, 64);
    PipeBarrier<PIPE_V>();
    if (ordered) {
        Add(probe.b, probe.a, probe.b, 64, TILE / 64, BinaryRepeatParams(1, 1, 1, 0, 8, 0));
    } else {
        Add(probe.b, probe.b, probe.a, 64, TILE / 64, BinaryRepeatParams(1, 1, 1, 0, 0, 8));
    }
}
} // namespace gathered_in_first_operand
