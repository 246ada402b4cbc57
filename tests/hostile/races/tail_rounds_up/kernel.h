// Each block rounds its last copy up to 32 bytes, into what the next block writes.
#include "probe.h"

namespace tail_rounds_up {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    const uint32_t share = TILE - 4;
    const auto mine = probe.scratch[probe.block * share];
    if (ordered) {
        DataCopyPad(mine, probe.b, DataCopyExtParams(1, share * sizeof(float), 0, 0, 0));
    } else {
        DataCopy(mine, probe.b, TILE);
    }
}
} // namespace tail_rounds_up
