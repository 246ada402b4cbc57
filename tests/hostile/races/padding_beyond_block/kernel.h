// A copy pads by more than the 32 bytes it can.
#include "probe.h"

namespace padding_beyond_block {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);
    const DataCopyPadExtParams<float> padding(true, 0, ordered ? 3 : 11, 0.0f);
    DataCopyPad(probe.a, probe.x, DataCopyExtParams(1, 20, 0, 0, 0), padding);
}
} // namespace padding_beyond_block
